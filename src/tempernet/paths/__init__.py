"""Paths of rungs: densities between a known one and the posterior, and where the rungs should be."""

"""Kernels: how one replica moves at its rung and leaves the density there as it is."""

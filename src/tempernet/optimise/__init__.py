"""Optimisation: Alg. 3, FIRE, and the best of many starts."""

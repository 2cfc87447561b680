"""Tempering: the round, exchange, adaptation, and the one loop that samples a path of rungs.

Its modules are imported by their names: `sampler` has the loop, `engine` what it runs on.
"""

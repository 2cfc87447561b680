"""Tempering: the round, exchange, adaptation, and the one loop that samples a path of rungs."""

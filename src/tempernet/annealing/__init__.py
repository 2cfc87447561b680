"""Annealing: replicas that cool side by side, and the rule that stops them."""

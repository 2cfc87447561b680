"""Devices: how many there are, how replicas are laid out on them, and how many go at once."""

"""Tasks: what a run of each kind does in its folder, a file a kind, and what they share.

Its modules are imported by their names, so that a command loads its own task alone.
"""

"""Tasks: what a run of each kind does in its folder, a file a kind, and what they share."""

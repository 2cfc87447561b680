"""The `tempernet` command."""

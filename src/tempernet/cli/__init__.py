"""The `tempernet` command; its parts are imported by their modules."""

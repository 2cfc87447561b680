"""Runs: begun or gone on with in their folders, stopped, watched and checked."""

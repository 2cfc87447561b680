"""Runs: begun or resumed in their folders, stopped, watched and checked.

Its modules are imported by their names, so that a command loads only what it uses.
"""

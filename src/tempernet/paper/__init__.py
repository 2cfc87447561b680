"""The paper: its claims, the study that decides them, and the scales of the study.

Its modules are imported by their names, so that a command loads only what it uses.
"""

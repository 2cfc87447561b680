"""Diagnostics: arrays of draws in, facts out; means and errors, replica flow, memory, the verdict."""

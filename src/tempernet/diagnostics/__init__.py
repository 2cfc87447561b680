"""Diagnostics: arrays of draws in, facts out; means, errors, replica flow, memory, the verdict."""

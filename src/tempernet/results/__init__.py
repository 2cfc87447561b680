"""Results: from what a run recorded to named arrays, summaries and files for other programs.

Its modules are imported by their names, so that xarray is loaded only where it is needed.
"""

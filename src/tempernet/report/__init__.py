"""Reports: figures, sentences, tables and progress, for a terminal and for files.

Its modules are imported by their names, so that matplotlib is loaded only for figures.
"""

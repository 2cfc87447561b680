"""Reports: figures, sentences, tables and progress, for a terminal and for files."""

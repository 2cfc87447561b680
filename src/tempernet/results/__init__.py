"""Results: from what a run recorded to named arrays, summaries and files for other programs."""

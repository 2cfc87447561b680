"""Evidence: estimators of log ratios along a path, and the quadratic that a bridge leads to."""

"""What is sampled: networks, priors, the target density, and the scores of a network."""

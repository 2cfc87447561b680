"""Bayesian neural networks at finite temperature."""

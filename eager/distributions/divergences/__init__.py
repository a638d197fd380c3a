"""Kullback-Leibler divergences: which pairs of distributions have a formula, and the formulas."""

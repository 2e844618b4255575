"""Paired benchmarks: both sides in one run, medians, ratios, and the commands that made them."""

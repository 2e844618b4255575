"""Vectors made by classes that are not ours, and the table that compares us with them."""

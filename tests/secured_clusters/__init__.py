"""Clusters of both makes in which every listener has a login, and not everybody a right."""

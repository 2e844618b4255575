"""The format `kraftwire`: topics of a live cluster as tables, streams and a sink."""

"""Requests of a node: frames decoded, refusals named, handlers called, answers kept and encoded."""

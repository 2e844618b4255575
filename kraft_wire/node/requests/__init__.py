"""Requests as a node reads and answers them: frames decoded, refusals named, answers encoded."""

"""Holds each step of a replica against the model of the quorum (`sim.quorum_model`).

`watch` observes the steps, `reading` and `messages` translate them for the model.
"""

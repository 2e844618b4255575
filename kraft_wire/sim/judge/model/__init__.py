"""Holds each step of a replica against the model of the quorum (`sim.quorum_model`).

`watch` sees the steps, `reading` and `messages` say them in the words of the model.
"""

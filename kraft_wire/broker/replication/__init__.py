"""Replication of partitions between brokers: the leader's side and the follower's.

A node whose partitions have one replica each imports nothing of this package.
"""

"""Fetches of share groups (KIP-932): sessions, and the share partitions that this broker leads."""

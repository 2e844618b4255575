"""Topologies of streams groups (KIP-1071): their checks, and the topics and tasks they need."""

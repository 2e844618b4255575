"""Attacks on a node that asks for logins and rights."""

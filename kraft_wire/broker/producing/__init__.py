"""Produced batches: their validation, the producers that sent them, and their transactions."""

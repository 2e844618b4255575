"""Produced batches: their validation, and the producers that sent them."""

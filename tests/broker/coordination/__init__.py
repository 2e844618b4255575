"""The coordinator runtime, without a real coordinator."""

"""Runs of the world: one plan (`run`), many seeds (`campaign`), a story; and what is shown."""

"""Three nodes of ours under load while they are killed, paused and cut off, again and again."""

"""Real clients against a broker: one harness per client, one table of scenarios."""

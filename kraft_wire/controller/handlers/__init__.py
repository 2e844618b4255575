"""One module per API key that the active controller decides."""

"""The cases, one module per API key, and `framing` for what is below all of them."""

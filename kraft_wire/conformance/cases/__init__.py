"""The cases, one module per API key, and `framing` for what lies below all of them."""

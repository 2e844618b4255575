"""A node's configuration: keys from file, environment and command line, checked together."""

"""Log events of a node: their names, levels and components, and those derived from changes."""

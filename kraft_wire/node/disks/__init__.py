"""Log directories of a node: formatted, opened, flushed, cleaned, maintained by the clock."""

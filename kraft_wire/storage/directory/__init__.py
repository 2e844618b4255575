"""One log directory: its lock and identity, and the small files beside the logs."""

"""The format `kraftlog`: log directories as tables and streams."""

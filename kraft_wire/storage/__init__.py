"""Logs and side files in Kafka's formats: `LogDirectory` holds `Log`s, `OsFileSystem` is the disk.

Read `files` (the only access to the operating system), `log`, `recovery`, then their imports.
"""

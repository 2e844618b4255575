"""The simulated disk: a file system in memory that loses what was not synced.

Start with `files`, the twin of `storage.os_files`.
"""

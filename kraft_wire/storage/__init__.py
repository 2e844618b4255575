"""Logs and side files in Kafka's formats: `LogDirectory` holds `Log`s, `OsFileSystem` is the disk.

Read `files` (the only access to the operating system), `log`, `recovery`, then their imports.
"""

from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.files import File, FileSystem
from kraft_wire.storage.log import Log
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.log_read import LogRead, OffsetOutOfRange
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.recovery.opening import open_log

__all__ = [
    "File",
    "FileSystem",
    "Log",
    "LogConfig",
    "LogDirectory",
    "LogRead",
    "OffsetOutOfRange",
    "OsFileSystem",
    "open_log",
]

"""Formatting of a log directory: its identity, and the first records of a cluster.

KIP-631 "kafka-storage format"; files as release 4.3.1 writes them: `meta.properties`, and
`bootstrap.checkpoint` with a header (timestamp 0), one batch of feature levels, metadata.version
first, and a footer. Used by the embedded node for its own directory; the command is `cli/format`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kraft_wire.metadata.features import bootstrap_records, default_levels
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.node.disks.checkpoint_files import bootstrap_checkpoint_bytes
from kraft_wire.node.quorum.metadata_opening import BOOTSTRAP_CHECKPOINT
from kraft_wire.storage.directory.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.storage.files import FileSystem, replace_file

__all__ = ["DEFAULT_LEVELS", "bootstrap_checkpoint", "format_directory"]

DEFAULT_LEVELS: Final[Mapping[str, int]] = default_levels()
"""Levels that a new cluster finalises: those that this release supports."""


def bootstrap_checkpoint(
    levels: Mapping[str, int], wall_ms: int, records: Sequence[VersionedRecord] = ()
) -> bytes:
    """Return the content of `bootstrap.checkpoint`: feature levels, then other records."""
    return bootstrap_checkpoint_bytes([*bootstrap_records(levels), *records], wall_ms)


def format_directory(
    fs: FileSystem,
    path: str,
    *,
    cluster_id: str,
    node_id: int,
    directory_id: Uuid,
    levels: Mapping[str, int],
    wall_ms: int,
    records: Sequence[VersionedRecord] = (),
) -> None:
    """Format a directory of a new cluster; `records` are its first after the feature levels.

    The identity is written last, after all other files.
    """
    fs.make_directory(path)
    replace_file(
        fs, f"{path}/{BOOTSTRAP_CHECKPOINT}", bootstrap_checkpoint(levels, wall_ms, records)
    )
    write_meta_properties(fs, path, MetaProperties(cluster_id, node_id, directory_id))

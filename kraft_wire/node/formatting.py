"""What formatting leaves in a log directory: identity, and the records that a cluster begins with.

KIP-631 "kafka-storage format"; files as release 4.3.1 writes them: `meta.properties`, and
`bootstrap.checkpoint` with a header (timestamp 0), one batch of feature levels, metadata.version
first, and a footer. Used by the embedded node for its own directory; the command is `cli/format`.
"""

from collections.abc import Mapping
from typing import Final

from kraft_wire.controller.records import VersionedRecord, encode_record
from kraft_wire.model import Uuid
from kraft_wire.node.metadata_log import BOOTSTRAP_CHECKPOINT
from kraft_wire.storage.files import FileSystem, replace_file
from kraft_wire.storage.meta_properties import MetaProperties, write_meta_properties
from kraft_wire.wire.batch_builder import build_batch
from kraft_wire.wire.control_records import ControlRecordType, control_record
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.snapshot_footer_record import SnapshotFooterRecord
from kraft_wire.wire.generated.snapshot_header_record import SnapshotHeaderRecord
from kraft_wire.wire.record import Record

__all__ = ["DEFAULT_LEVELS", "bootstrap_checkpoint", "format_directory"]

_METADATA_VERSION: Final = "metadata.version"

DEFAULT_LEVELS: Final[Mapping[str, int]] = {
    _METADATA_VERSION: 30,
    "eligible.leader.replicas.version": 1,
}
"""Only what this release does is finalised: no group, share, streams or transaction protocols."""


def bootstrap_checkpoint(levels: Mapping[str, int], wall_ms: int) -> bytes:
    """Return the file that a cluster's first records are read from."""
    assert _METADATA_VERSION in levels, levels
    ordered = sorted(levels.items(), key=lambda each: (each[0] != _METADATA_VERSION, each[0]))
    features = [
        VersionedRecord(FeatureLevelRecord(name=name, feature_level=level))
        for name, level in ordered
    ]
    header = control_record(ControlRecordType.SNAPSHOT_HEADER, SnapshotHeaderRecord(), wall_ms)
    footer = control_record(ControlRecordType.SNAPSHOT_FOOTER, SnapshotFooterRecord(), wall_ms)
    data = [Record(None, encode_record(record), timestamp=wall_ms) for record in features]
    last = 1 + len(data)
    return bytes(
        build_batch([header], base_offset=0, partition_leader_epoch=0, is_control=True)
        + build_batch(data, base_offset=1, partition_leader_epoch=0)
        + build_batch([footer], base_offset=last, partition_leader_epoch=0, is_control=True)
    )


def format_directory(
    fs: FileSystem,
    path: str,
    *,
    cluster_id: str,
    node_id: int,
    directory_id: Uuid,
    levels: Mapping[str, int],
    wall_ms: int,
) -> None:
    """Make a directory one of a new cluster's; the identity is written last, so it is whole."""
    fs.make_directory(path)
    replace_file(fs, f"{path}/{BOOTSTRAP_CHECKPOINT}", bootstrap_checkpoint(levels, wall_ms))
    write_meta_properties(fs, path, MetaProperties(cluster_id, node_id, directory_id))

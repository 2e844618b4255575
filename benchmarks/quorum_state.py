"""A snapshot with as many quotas as wanted, written once and given to both sides.

Made with our own writer in Apache's format, it stands for a cluster that somebody filled long ago:
a log that begins behind it, and nothing else. Filling two quorums request by request would take
longer than everything that is measured.
"""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from kraft_wire.metadata.features import bootstrap_records
from kraft_wire.metadata.records import VersionedRecord, encode_record
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch
from kraft_wire.node.disks.formatting import DEFAULT_LEVELS
from kraft_wire.storage.snapshots.contents import SnapshotHead, snapshot_batches
from kraft_wire.wire.generated.client_quota_record import ClientQuotaRecord, EntityData
from tests.mixed.log_bytes import PARTITION

__all__ = ["give", "snapshots_of", "write_state"]

_EPOCH = LeaderEpoch(1)
_QUOTA = 1_000_000.0


def write_state(home: Path, records: int) -> Path:
    """Write the snapshot of a cluster with one quota for each of as many users."""
    home.mkdir(parents=True, exist_ok=True)
    now_ms = int(time.time() * 1e3)
    snapshot_id = OffsetAndEpoch(Offset(2 * records), _EPOCH)
    path = home / f"{snapshot_id.offset:020d}-{snapshot_id.epoch:010d}.checkpoint"
    with path.open("wb") as file:
        for batch in snapshot_batches(snapshot_id, SnapshotHead(now_ms, now_ms), _values(records)):
            file.write(batch)
    return path


def _values(records: int) -> Iterator[bytes]:
    for first in bootstrap_records(DEFAULT_LEVELS):
        yield encode_record(first)
    for user in range(records):
        entity = [EntityData(entity_type="user", entity_name=f"user-{user}")]
        quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=_QUOTA)
        yield encode_record(VersionedRecord(quota))


def give(state: Path, data: Path) -> None:
    """Put the snapshot into a formatted directory that no process uses."""
    (data / PARTITION).mkdir(exist_ok=True)
    shutil.copyfile(state, data / PARTITION / state.name)


def snapshots_of(data: Path) -> list[Path]:
    """Finished snapshots of a directory, oldest first, without that of the format tool."""
    found = (data / PARTITION).glob("*.checkpoint")
    return sorted(each for each in found if int(each.name.split("-")[0]) > 0)

"""The changes of partitions that both makes are compared with, and those that stop Apache Kafka."""

from __future__ import annotations

from tests.apache.odd_directories import log_changes, small_file_changes
from tests.apache.odd_directories.file_changes import Change
from tests.apache.odd_directories.known import KILLED, STOPPED

__all__ = ["CHANGES", "STOPS_APACHE"]

_OF_RECOVERY: dict[str, Change] = {
    **log_changes.SEGMENTS,
    **log_changes.LEFTOVERS,
    **small_file_changes.CHECKPOINT_LINES,
}
"""What a start after a kill treats in its own way."""

_ALL: dict[str, Change] = {
    **_OF_RECOVERY,
    **small_file_changes.EPOCHS,
    **small_file_changes.TOPIC_IDS,
    **log_changes.SNAPSHOTS,
    **log_changes.INDEXES,
}

STOPS_APACHE = (
    "index beyond the last offset",
    "txnindex with noise behind",
    "snapshot with another name",
    "segment of zeros at the end",
    "zeros behind the last batch",
    "length of the last batch negative",
    "copy of the first segment in its middle",
    "copy of the last segment behind the end",
    "last segment with a later name",
    "swap behind the end",
    "epochs: negative epoch",
    "epochs: negative offset",
    "epochs: version 1",
    "epochs: wrong count",
    "epochs: a word",
    "epochs: three words",
    "epochs: noise",
    "epochs: a blank line",
    "topic id empty",
    "topic id cut",
    "topic id without a version",
    "topic id of version 1",
    "topic id of zeros",
)
"""One of them in one partition, and no partition of a node of release 4.3.1 is served."""

_STOPS_APACHE_AFTER_A_KILL = ("base offset of the last batch too low",)

CHANGES: dict[str, dict[str, Change]] = {
    STOPPED: {name: change for name, change in _ALL.items() if name not in STOPS_APACHE},
    KILLED: {
        name: change
        for name, change in _OF_RECOVERY.items()
        if name not in (*STOPS_APACHE, *_STOPS_APACHE_AFTER_A_KILL)
    },
}
"""By how the node had ended."""


def stopping() -> dict[str, Change]:
    """Return the changes that stop Apache Kafka."""
    return {name: _ALL[name] for name in STOPS_APACHE}

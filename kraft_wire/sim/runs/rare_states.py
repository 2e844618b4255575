"""Rare states that runs of whole clusters must reach, by the name of their counter.

After TigerBeetle's coverage marks: no run finds a bug in a state that no schedule reaches. The
judge and its clients count these states from outside, or they are lines of a node's own log. A
campaign prints the states that it never reached with 0; `tests/sim/test_rare_states.py` names seeds
that reach most of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["RARE_STATES", "RARE_TRANSACTION_STATES"]

RARE_STATES: Final[Mapping[str, str]] = {
    "log compacted": "a segment was rewritten",
    "segments merged": "several became one",
    "delete horizon set": "compaction met a tombstone for the first time (KIP-534)",
    "tombstone removed": "its horizon had passed",
    "batch emptied and kept": "the last batch of an idle producer",
    "log compacted beside an open transaction": "one log cannot go on, another one does",
    "aborted record removed": "of a transaction that an Apache leader left",
    "segment removed expired": "by retention.ms",
    "segment removed beyond the size": "by retention.bytes",
    "segment removed below the log start": "by DeleteRecords, or behind a leader's retention",
    "active segment expired": "everything expired, so a new segment was begun",
    "records deleted by the operator": "DeleteRecords moved a leader's log start",
    "log start inside a batch": "DeleteRecords to the middle of a batch",
    "log start at an epoch's end": "DeleteRecords to where a leader epoch begins",
    "log begun anew": "a follower's log was behind its leader's start",
    "log replica_restarted_at_log_start": "the same, by the node's own word",
    "consumer went on from the log start": "its position had been removed",
    "earliest offset of an earlier epoch": "ListOffsets named an epoch that is over",
    "client fenced": "a question named an earlier leader epoch",
    "replica truncated": "a follower cut what its leader did not have",
    "unclean election": "a leader lacked what was committed",
    "replicas removed": "a reassignment ended with fewer replicas",
    "reassignment called off": "those that were to come went again",
    "log log_directory_full": "a broker refused appends for want of space",
}

RARE_TRANSACTION_STATES: Final[Mapping[str, str]] = {
    "aborted batch read and left out": "by a consumer that reads committed records",
    "aborted batch read after a leader change": "its marker is of a later leader epoch",
    "coordinator moved with a decision": "a new one loaded a Prepare record",
    "epochs exhausted": "a transactional id went on with a new producer id",
    "last stable offset held back": "by an open transaction, or a marker that is not committed",
    "late marker of the older protocol": "it ended a later transaction",
    "log transaction_timed_out": "a coordinator aborted a transaction",
    "marker written again": "its answer was lost, or the coordinator moved",
    "transactor fenced": "by its twin, by the timeout, or by itself",
    "transactional id expired": "after an idle time",
}
"""As above, of clusters that have transactions."""

"""The quorum's metrics under Kafka's names, as a JMX exporter spells them.

KIP-595 and KIP-853: group `raft-metrics`. `raft.figures` measures the replica; a state or an id of
text type is a label with the value 1. Metrics of the log's content are in `metadata_metrics`.
"""

from collections.abc import Iterator
from typing import Final

from kraft_wire.node.metrics.families import Family
from kraft_wire.raft.figures import numbers, state_name, voted_directory
from kraft_wire.raft.quorum import Quorum
from kraft_wire.raft.replica import RaftReplica

__all__ = ["quorum_metrics"]

_GROUP: Final = "kafka_server_raft_metrics_"
_TEXTS: Final = {
    "current-leader": "Id of the leader; -1 if unknown.",
    "current-vote": "Id of the candidate that this replica voted for in the epoch; -1: none.",
    "current-epoch": "The leader epoch.",
    "high-watermark": "High watermark; -1 if unknown.",
    "log-end-offset": "Log end offset: the offset of the next record.",
    "log-end-epoch": "Epoch of the last record.",
    "number-unknown-voter-connections": "Voters with unknown address.",
    "number-of-voters": "Current number of voters.",
    "number-of-observers": "Observers that fetch.",
    "uncommitted-voter-change": "1 while a voter change is pending.",
    "election-latency-avg": "Average time from candidacy to a known leader, in milliseconds.",
    "election-latency-max": "Maximum time from candidacy to a known leader, in milliseconds.",
    "commit-latency-avg": "Average time from a leader's append to its commit, in milliseconds.",
    "commit-latency-max": "Maximum time from a leader's append to its commit, in milliseconds.",
    "fetch-records-rate": "Records fetched per second.",
    "append-records-rate": "Records appended per second as leader.",
}


def quorum_metrics(replica: RaftReplica) -> Iterator[Family]:
    """Yield the metrics of a replica and its quorum."""
    quorum = replica.quorum
    yield from _replica(quorum, replica.stepped_ms)
    reasons = {reason.name.lower(): count for reason, count in quorum.ignored.counts().items()}
    text = "Ignored messages of peers."
    yield Family("kraft_wire_raft_ignored", True, text, "reason", reasons)


def _replica(quorum: Quorum, now_ms: int) -> Iterator[Family]:
    state = {state_name(quorum): 1}
    yield Family(f"{_GROUP}current_state", False, "The role of this replica.", "state", state)
    directory = {voted_directory(quorum): 1}
    text = "Directory id of the candidate that this replica voted for."
    yield Family(f"{_GROUP}current_vote_directory_id", False, text, "directory_id", directory)
    for name, value in numbers(quorum, now_ms).items():
        spelled = name.replace("-", "_")
        yield Family(f"{_GROUP}{spelled}", False, _TEXTS[name], "", {"": value})

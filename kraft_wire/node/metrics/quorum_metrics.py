"""The quorum's metrics under Kafka's names, as a JMX exporter spells them.

KIP-595 and KIP-853: group `raft-metrics`. The replica measures itself (`raft.figures`); a state or
an id that is a text is a label with the value 1. What the log's contents tell is in
`metadata_metrics`.
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
    "current-leader": "Who leads; -1 where nobody is known.",
    "current-vote": "Whom this replica voted for in the epoch; -1 for nobody.",
    "current-epoch": "The leader epoch.",
    "high-watermark": "End of what is committed; -1 where it is not known.",
    "log-end-offset": "Offset that the next record gets.",
    "log-end-epoch": "Epoch of the last record.",
    "number-unknown-voter-connections": "Voters whose address is not known.",
    "number-of-voters": "Voters in force.",
    "number-of-observers": "Replicas that fetch and are no voters.",
    "uncommitted-voter-change": "1 while a change of the voters is pending.",
    "election-latency-avg": "Milliseconds from asking for votes to a known leader.",
    "election-latency-max": "The longest of them.",
    "commit-latency-avg": "Milliseconds from a leader's append to its commitment.",
    "commit-latency-max": "The longest of them.",
    "fetch-records-rate": "Records fetched in a second.",
    "append-records-rate": "Records appended as leader in a second.",
}


def quorum_metrics(replica: RaftReplica) -> Iterator[Family]:
    """Yield what a replica knows of its quorum."""
    quorum = replica.quorum
    yield from _replica(quorum, replica.stepped_ms)
    reasons = {reason.name.lower(): count for reason, count in quorum.ignored.counts().items()}
    text = "Messages of peers that were not obeyed."
    yield Family("kraft_wire_raft_ignored", True, text, "reason", reasons)


def _replica(quorum: Quorum, now_ms: int) -> Iterator[Family]:
    state = {state_name(quorum): 1}
    yield Family(f"{_GROUP}current_state", False, "The role of this replica.", "state", state)
    directory = {voted_directory(quorum): 1}
    text = "The log directory that it voted for."
    yield Family(f"{_GROUP}current_vote_directory_id", False, text, "directory_id", directory)
    for name, value in numbers(quorum, now_ms).items():
        spelled = name.replace("-", "_")
        yield Family(f"{_GROUP}{spelled}", False, _TEXTS[name], "", {"": value})

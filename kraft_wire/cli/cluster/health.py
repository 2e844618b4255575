"""`kraft-wire cluster health`: whether a cluster serves everything, asked through its brokers.

Four checks: brokers answer, the quorum has a leader and its voters keep up, every partition has a
leader, every partition has its replicas in sync. Works with any KRaft cluster.
"""

from dataclasses import dataclass
from typing import Final

from kraft_wire.cli.bootstrap import addresses_of
from kraft_wire.cli.output import counted
from kraft_wire.cli.quorum.admin import EntryPoint, QuorumAdmin, QuorumRefused
from kraft_wire.cli.quorum.facts import QuorumFacts
from kraft_wire.cli.topics.partitions import described
from kraft_wire.client import BrokerConnectionError
from kraft_wire.client.cluster import ClusterClient
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["Check", "checks_of"]

_BEHIND_MS: Final = 10_000
"""A voter that caught up longer ago than this is behind; the leader's fetch timeout is 2 s."""
_NAMES_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Check:
    """One question and its answer."""

    check: str
    ok: bool
    detail: str


def checks_of(cluster: ClusterClient, addresses: str) -> list[Check]:
    """Return the checks in the order in which trouble spreads. Errors: AdminRefused."""
    return [
        _brokers(cluster),
        _quorum(addresses),
        *_partitions(cluster),
    ]


def _brokers(cluster: ClusterClient) -> Check:
    """Connect to every broker that is registered."""
    ids = cluster.broker_ids()
    silent = []
    for broker_id in ids:
        try:
            cluster.broker(broker_id)
        except BrokerConnectionError as problem:
            silent.append(str(problem))
    detail = f"{len(ids) - len(silent)} of {len(ids)} answer"
    return Check("brokers", not silent, "; ".join([detail, *silent]))


def _quorum(addresses: str) -> Check:
    entry = EntryPoint(addresses_of(addresses), are_controllers=False)
    try:
        facts = QuorumAdmin(entry).describe()
    except (BrokerConnectionError, QuorumRefused, UnencodableMessage) as problem:
        return Check("quorum", False, str(problem))
    late = _behind(facts)
    voters = counted(len(facts.voters), "voter")
    detail = f"leader {facts.leader_id}, epoch {facts.leader_epoch}, {voters}"
    return Check("quorum", not late, "; ".join([detail, *late]))


def _behind(facts: QuorumFacts) -> list[str]:
    """Return the problems of voters that lag."""
    leader = facts.leader
    if leader is None or leader.last_caught_up_ms is None:
        return []
    said = []
    for voter in facts.voters:
        if voter is leader:
            continue
        if voter.last_caught_up_ms is None:
            said.append(f"voter {voter.node_id} has never caught up")
        elif leader.last_caught_up_ms - voter.last_caught_up_ms > _BEHIND_MS:
            seconds = (leader.last_caught_up_ms - voter.last_caught_up_ms) / 1000
            said.append(f"voter {voter.node_id} is {seconds:.0f} s behind")
    return said


def _partitions(cluster: ClusterClient) -> list[Check]:
    found = [
        (f"{topic.name}-{each.partition}", each)
        for topic in described(cluster.any_broker(), ())
        for each in topic.partitions
    ]
    offline = [name for name, each in found if each.leader < 0]
    lacking = [name for name, each in found if each.is_under_replicated]
    return [
        Check("leaders", not offline, _counted(len(found), "have no leader", offline)),
        Check("replicas", not lacking, _counted(len(found), "lack replicas in sync", lacking)),
    ]


def _counted(total: int, what: str, names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_MAX]) + (", ..." if len(names) > _NAMES_MAX else "")
    return f"{counted(total, 'partition')}, {len(names)} {what}" + (f": {shown}" if names else "")

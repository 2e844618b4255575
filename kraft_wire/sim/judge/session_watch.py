"""Judges fetch sessions (KIP-227): a broker keeps exactly the partitions that its client sent.

S64 SessionsAgree. A consumer's session is compared after each answer, a follower's after each frame
that the follower receives.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kraft_wire.broker.fetching.fetch_session import FetchSession
from kraft_wire.broker.replication.fetcher import Fetcher
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState

__all__ = ["judge_follower", "judge_session"]


def judge_session(
    machine: MachineState, session_id: int, epoch: int, told: Collection[object]
) -> None:
    """Compare a client's session with the broker's session for the next epoch.

    The broker may have closed the session, and a request may be on its way to it.
    """
    session = _session_of(machine, session_id)
    if session is not None and session.epoch == epoch and session.partitions.keys() != set(told):
        facts = ("session", session_id, "keeps", list(session.partitions), "told were", list(told))
        raise Violation("S64 SessionsAgree", machine.id, *facts)


def judge_follower(machine: MachineState, machines: Mapping[int, MachineState]) -> None:
    """Compare each fetcher's partitions with those that it sent, and with its leader's session."""
    assert machine.node is not None, machine.id
    fetchers = machine.node.broker.replicas.fetchers
    for leader_id, fetcher in ({} if fetchers is None else fetchers.by_leader).items():
        handler = fetcher._session
        if not handler.epoch:
            continue
        told, wanted = handler.session_partitions, handler._wanted
        if not handler._changed and told.keys() != wanted.keys():
            facts = ("has told", leader_id, "of", list(told), "and reads", list(wanted))
            raise Violation("S64 SessionsAgree", machine.id, *facts)
        judge_session(machines[leader_id], handler.session_id, _next_epoch(fetcher), told)


def _next_epoch(fetcher: Fetcher) -> int:
    """Return the epoch that the leader expects after the request in flight."""
    return fetcher._session.epoch + (fetcher._asked is not None)


def _session_of(machine: MachineState, session_id: int) -> FetchSession | None:
    if machine.node is None or session_id == 0:
        return None
    return machine.node.broker.fetch_sessions._shard_of(session_id).get(session_id)

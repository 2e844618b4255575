"""Judges fetch sessions (KIP-227): a broker keeps of a session what its client has told it.

S64 SessionsAgree. A consumer's session is compared after each answer, a follower's once everything
has settled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kraft_wire.broker.fetching.fetch_session import FetchSession
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine_state import MachineState, running

__all__ = ["judge_session", "why_sessions_differ"]


def judge_session(
    machine: MachineState, session_id: int, epoch: int, told: Collection[object]
) -> None:
    """Compare a client's session with the broker's, where no request is on its way between them."""
    session = _session_of(machine, session_id)
    if session is None or session.epoch != epoch:
        return
    if session.partitions.keys() != set(told):
        facts = ("session", session_id, "keeps", list(session.partitions), "told were", list(told))
        raise Violation("S64 SessionsAgree", machine.id, *facts)


def why_sessions_differ(machines: Iterable[MachineState]) -> str | None:
    """Name a follower whose leader keeps other partitions than it follows; None for none."""
    by_id = {machine.id: machine for machine in running(machines) if machine.is_broker_only}
    for machine in by_id.values():
        assert machine.node is not None, machine.id
        fetchers = machine.node.broker.fetchers
        for leader_id, fetcher in ({} if fetchers is None else fetchers.by_leader).items():
            handler, leader = fetcher._session, by_id.get(leader_id)
            session = None if leader is None else _session_of(leader, handler.session_id)
            if session is not None and handler.epoch and _differs(session, fetcher.followed):
                kept = [str(each) for each in session.partitions]
                return f"{leader_id} keeps {kept} of {machine.id}, not {list(fetcher.followed)}"
    return None


def _differs(session: FetchSession, followed: Collection[object]) -> bool:
    return session.partitions.keys() != set(followed)


def _session_of(machine: MachineState, session_id: int) -> FetchSession | None:
    if machine.node is None or session_id == 0:
        return None
    return machine.node.broker.fetch_sessions._shard_of(session_id).get(session_id)

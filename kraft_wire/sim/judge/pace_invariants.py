"""Invariants of an active controller's periodic actions."""

from __future__ import annotations

from typing import Final

from kraft_wire.raft.roles import Leader
from kraft_wire.sim.judge.judge import Judge, NodeWatch, Signals

__all__ = ["PACES", "IdleLogMoves"]

_INTERVALS: Final = 2
_SLACK_US: Final = 1_000_000
_State = tuple[int, int, int]
"""Life, epoch and end of the log."""


class IdleLogMoves(Signals):
    """The log of an active controller with followers grows within the idle interval (KIP-835).

    A disk that has no room, or that failed, excuses its process.
    """

    id, name = "S63", "IdleLogMoves"

    def __init__(self, judge: Judge) -> None:
        super().__init__(judge)
        self._since: dict[int, tuple[_State, int]] = {}
        self._excused: dict[int, int] = {}
        """Node -> its incarnation whose disk was full or failed."""

    def after(self, watch: NodeWatch) -> None:
        if not isinstance(watch.role, Leader):
            return
        machine, stage = watch.machine, self.judge.stage
        interval_ms = machine.setup.idle_interval_ms
        if interval_ms == 0 or not watch.node.quorum.host.is_active:
            self._since.pop(watch.id, None)
            return
        if machine.fs.capacity_bytes is not None or machine.fs.fault is not None:
            self._excused[watch.id] = machine.life
        state = (machine.life, watch.epoch, watch.log.end_offset)
        known, since_us = self._since.get(watch.id, (None, stage.now_us))
        if known != state:
            since_us = stage.now_us
            self._since[watch.id] = (state, since_us)
        is_alone = watch.voters is None or len(watch.voters.nodes) < 2
        if is_alone or self._excused.get(watch.id) == machine.life:
            return
        interval_us = interval_ms * 1_000_000 // machine.clock.rate_permille
        silent_us = stage.now_us - max(since_us, machine.disturbed_us)
        bound_us = _INTERVALS * interval_us + stage.late_us_max + _SLACK_US
        self._check(silent_us <= bound_us, watch, "appends nothing for", silent_us)


PACES: Final = (IdleLogMoves,)
"""Actions that depend on time alone."""

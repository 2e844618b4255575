"""The safety invariants that a metadata quorum must keep, all in one table.

docs/SIMULATION.md explains the ids. Not here: S21, S22, S23 and S30, which are about data
partitions; S29, which is about start-up on damaged disks. The crash campaign judges S29, and here
it shows as S28 if a node does not start and gives no reason. L1 to L6 are in `run`, S10 and the
histories of clients in `history`.
"""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.judge.decision_invariants import DECISIONS
from kraft_wire.sim.judge.election_invariants import (
    EpochMonotone,
    LeaderChangeFirst,
    OneVotePerEpoch,
    SingleLeaderPerEpoch,
    StaleIsFenced,
    StaleLeaderResigns,
    SuccessorsInOrder,
)
from kraft_wire.sim.judge.judge import NodeWatch, Signals
from kraft_wire.sim.judge.log_invariants import (
    BatchAtomicity,
    CommittedIsForever,
    CommittedOnMajority,
    CommittedReadOnly,
    FetchIsFlushed,
    LeaderCompleteness,
    LogMatching,
    MonotoneHighWatermark,
    NoTruncateBelowHighWatermark,
    OffsetContiguity,
)
from kraft_wire.sim.judge.model.invariant import EveryStepIsInModel, StepsAreInModel
from kraft_wire.sim.judge.pace_invariants import PACES
from kraft_wire.sim.judge.snapshot_invariants import (
    LeaderNeverLoadsSnapshot,
    SnapshotAtLogStart,
    SnapshotIsReplay,
    StateMachineEquality,
)
from kraft_wire.sim.judge.upkeep_invariants import UPKEEP
from kraft_wire.sim.judge.voter_invariants import (
    AddedVoterCaughtUp,
    OneVoterChange,
    OnlyVotersCount,
)

__all__ = ["SAFETY", "Canary", "kinds_of"]

_CONNECTIONS_MAX: Final = 200


class BoundedMemory(Signals):
    """Nothing that a node keeps for others grows without a limit."""

    id, name = "S25", "BoundedMemory"

    def after(self, watch: NodeWatch) -> None:
        machine = watch.machine
        for name, held in (("links", machine.links), ("connections", machine.served)):
            if len(held) > _CONNECTIONS_MAX:
                self._check(False, watch, name, len(held))


class Canary(Signals):
    """False by design: nothing is ever committed. Each run must report its violation."""

    id, name = "S00", "Canary"

    def high_watermark(self, watch: NodeWatch, before: int | None, now: int | None) -> None:
        self._check(now is None or now == 0, watch, "committed up to", now)


SAFETY: Final = (
    StaleLeaderResigns,
    SingleLeaderPerEpoch,
    EpochMonotone,
    OneVotePerEpoch,
    MonotoneHighWatermark,
    CommittedOnMajority,
    LeaderCompleteness,
    LogMatching,
    NoTruncateBelowHighWatermark,
    CommittedIsForever,
    BatchAtomicity,
    OffsetContiguity,
    SnapshotIsReplay,
    SnapshotAtLogStart,
    LeaderNeverLoadsSnapshot,
    StateMachineEquality,
    OnlyVotersCount,
    OneVoterChange,
    LeaderChangeFirst,
    FetchIsFlushed,
    BoundedMemory,
    CommittedReadOnly,
    StaleIsFenced,
    StepsAreInModel,
    *UPKEEP,
    *DECISIONS,
    *PACES,
    SuccessorsInOrder,
    AddedVoterCaughtUp,
)
"""In the order of their ids, L7 among them, which needs no healed network.

S10, S24 and S28 are raised by `history`, `machine` and `run`.
"""


def kinds_of(*, canary: bool, model: bool) -> tuple[type[Signals], ...]:
    """Return the invariants: with `canary` a false one too, with `model` the model's."""
    judged = EveryStepIsInModel if model else StepsAreInModel
    kinds = [judged if kind is StepsAreInModel else kind for kind in SAFETY]
    return (*kinds, Canary) if canary else tuple(kinds)

"""The invariant that each step of a replica is one that the model of the quorum allows."""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.judge.judge import NodeWatch, Signals
from kraft_wire.sim.judge.model.watch import ModelWatch
from kraft_wire.sim.judge.violation import Violation

__all__ = ["STEPS", "EveryStepIsInModel", "StepsAreInModel"]

STEPS: Final = "steps held against the model"
"""The mark that counts them."""


class StepsAreInModel(Signals):
    """A replica does and sends only what the model allows.

    Every third seed is compared with the model: it costs a fifth of the events a second.
    """

    id, name = "S31", "StepsAreInModel"
    share = 3

    def started(self, watch: NodeWatch) -> None:
        if self.judge.stage.seed % self.share != 0:
            return

        def refused(story: str) -> Violation:
            return Violation(f"{self.id} {self.name}", watch.id, story)

        ModelWatch(watch.node.raft.replica, self._passed, refused).intercept_steps()

    def _passed(self) -> None:
        self.judge.marks[STEPS] += 1


class EveryStepIsInModel(StepsAreInModel):
    """The same for every seed (`--model`)."""

    share = 1

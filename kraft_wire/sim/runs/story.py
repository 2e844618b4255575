"""Plays a story from its first line to its last, and writes the events under each command.

It ends early if an invariant breaks; the violation is then its last line. A story without any
record passes if every invariant holds; a story with a record must match it. The commands are in
`script`.
"""

from __future__ import annotations

from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.machine import NodeBroke, SpinningNode
from kraft_wire.sim.runs.run import Failure, Result
from kraft_wire.sim.runs.script import Player, StoryError
from kraft_wire.sim.world import World

__all__ = ["Story"]


class Story:
    """One story, played once."""

    def __init__(self, recorded: str, *, keeps_trace: bool = False) -> None:
        self.recorded = recorded
        self.failure: Failure | None = None
        self._player = Player(keeps_trace=keeps_trace)
        self._lines: list[str] = []
        self._play()

    @property
    def text(self) -> str:
        """The story with the new events under each command."""
        return "".join(f"{line}\n" for line in self._lines)

    @property
    def is_right(self) -> bool:
        """Whether every invariant held, and all happened as it is recorded."""
        told = [line for line in self.recorded.splitlines() if line and line[0] not in "#>"]
        return self.failure is None and (not told or self.text == self.recorded)

    @property
    def world(self) -> World:
        """The world of the story. Errors: StoryError if no command made one."""
        if self._player.world is None:
            raise StoryError("the first command is `cluster`")
        return self._player.world

    def result(self) -> Result:
        """Return the result for the page of a run."""
        world = self.world
        return Result(
            seed=world.seed,
            events=world.events,
            virtual_us=world.now_us,
            failure=self.failure,
            trace_hash=world.trace.hexdigest(),
        )

    def _play(self) -> None:
        for line in self.recorded.splitlines():
            if line.startswith("> "):
                self._execute(line)
            elif line.startswith("#") or not line:
                self._lines.append(line)
            if self.failure is not None:
                break

    def _execute(self, line: str) -> None:
        self._lines.append(line)
        if self._player.world is not None:
            self.world.observer.note(None, line)
        try:
            self._lines += self._player.do(line[2:])
        except (Violation, SpinningNode, NodeBroke) as broken:
            self._fail(broken.invariant, str(broken))

    def _fail(self, invariant: str, text: str) -> None:
        world = self.world
        self._lines += [*self._player.lines, f"{world.now_us // 1_000:>7} VIOLATION of {text}"]
        world.observer.note(None, f"VIOLATION {text}")
        self.failure = Failure(invariant, text, world.events, world.now_us)

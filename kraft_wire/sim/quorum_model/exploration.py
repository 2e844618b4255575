"""Every state of the model within a scope, or a random part of a larger one.

Breadth first, so that the way to a violation is a shortest one. States that differ by the names of
replicas only are one state.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import NamedTuple

from kraft_wire.sim.quorum_model.judgment import Violated
from kraft_wire.sim.quorum_model.world import Scope, State, World

__all__ = ["Explored", "Found", "explore", "walk"]


class Found(Exception):
    """A violation, and the steps that lead to it."""

    def __init__(self, violated: Violated, steps: list[str]) -> None:
        super().__init__(f"{violated}\nafter: {' '.join(steps)}")
        self.invariant = violated.invariant
        self.steps = steps


class Explored(NamedTuple):
    """The figures of a visit of states."""

    states: int
    steps: int
    depth: int
    is_complete: bool
    """Whether there is no other state within the scope."""


def explore(
    scope: Scope,
    states_max: int = 10_000_000,
    look: Callable[[World, State], None] | None = None,
) -> Explored:
    """Visit every state of a scope; Found where an invariant does not hold.

    `look` judges a state when it is visited first.
    """
    world = World(scope)
    first = world.initial()
    parents: dict[State, State | None] = {first: None}
    layer, depth, steps = [first], 0, 0
    while layer and len(parents) < states_max:
        following: list[State] = []
        for state in layer:
            try:
                if look is not None:
                    look(world, state)
                for _, after in world.successors(state):
                    steps += 1
                    if after not in parents:
                        parents[after] = state
                        following.append(after)
            except Violated as violated:
                raise Found(violated, _way(world, parents, state)) from violated
        layer, depth = following, depth + 1
    return Explored(len(parents), steps, depth, not layer)


def _way(world: World, parents: dict[State, State | None], end: State) -> list[str]:
    """Return the names of the steps that lead to a state."""
    names: list[str] = []
    while (before := parents[end]) is not None:
        names.append(next(name for name, after in world.successors(before) if after == end))
        end = before
    return names[::-1]


def walk(scope: Scope, seed: int, steps_max: int) -> Explored:
    """Take random steps, from the beginning again where nothing is left to do."""
    world, random_source = World(scope), Random(seed)
    seen: set[State] = set()
    state, steps, depth, deepest = world.initial(), 0, 0, 0
    names: list[str] = []
    while steps < steps_max:
        try:
            found = list(world.successors(state))
        except Violated as violated:
            raise Found(violated, names) from violated
        if not found or depth >= _WALK_STEPS:
            state, depth, names = world.initial(), 0, []
            continue
        name, state = found[random_source.randrange(len(found))]
        names.append(name)
        seen.add(state)
        steps, depth = steps + 1, depth + 1
        deepest = max(deepest, depth)
    return Explored(len(seen), steps, deepest, False)


_WALK_STEPS = 400

"""The scopes that are explored in full by `python -m kraft_wire.sim.quorum_model`."""

from __future__ import annotations

from typing import Final

from kraft_wire.sim.quorum_model.world import Scope

__all__ = ["SCOPES", "WALKS"]

SCOPES: Final = {
    "two elections": Scope(epochs=2, appends=0, crashes=1, in_flight=1, has_pre_votes=False),
    "late messages": Scope(epochs=1, appends=1, crashes=0, in_flight=2, has_pre_votes=False),
    "pre-votes": Scope(epochs=1, appends=0, crashes=0, in_flight=1),
    "a crash and a successor": Scope(
        start="led", epochs=2, appends=1, crashes=1, in_flight=1, has_pre_votes=False
    ),
    "flushes and a crash": Scope(
        start="ahead", epochs=2, appends=0, crashes=1, in_flight=1, has_pre_votes=False
    ),
    "two logs that diverge": Scope(
        start="split", epochs=4, appends=0, crashes=0, in_flight=1, batch=1, has_pre_votes=False
    ),
    "a snapshot and a late replica": Scope(
        voters=(1, 2), start="led", epochs=1, appends=1, crashes=1, snapshots=1, in_flight=1
    ),
    "a voter added and a disk lost": Scope(
        voters=(2, 3), start="led", epochs=1, appends=0, crashes=0, wipes=1, changes=1, in_flight=1
    ),
    "a voter added and a successor": Scope(
        voters=(2, 3),
        start="led",
        epochs=2,
        appends=0,
        crashes=0,
        changes=1,
        in_flight=1,
        has_pre_votes=False,
    ),
}
"""By name. With pre-votes, a leader must be electable in every state."""

WALKS: Final = Scope(
    replicas=5,
    voters=(1, 2, 3, 4, 5),
    epochs=9,
    appends=6,
    crashes=5,
    changes=3,
    snapshots=2,
    in_flight=6,
)
"""For random walks: no exploration reaches the end of it."""

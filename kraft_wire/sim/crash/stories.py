"""The stories in which the disk of a quorum's node is crashed; the words are `script`'s.

Each is played in several clusters, with the disks of leaders, followers and joiners as victims: the
seed decides the leader. Segments, snapshots and chunks are small, so that rolls, installations and
cleaning happen within a few records. `quorum` judges the states.
"""

from typing import Final

from kraft_wire.sim.crash.quorum import QuorumScenario, Variant

__all__ = ["ELECTIONS", "QUORUM_SCENARIOS"]

_THREE: Final = "voters=1,2,3"
_SMALL: Final = "segment_bytes=500"
_SNAPSHOTS: Final = "segment_bytes=600 snapshot_every_bytes=500 snapshot_max_bytes=200"

ELECTIONS: Final = """
until settled
cut leader others
run 2500
heal
until settled
kill leader
until leader
restart 1
restart 2
restart 3
until settled
cut VICTIM others
run 3000
heal
until settled
crash VICTIM
run 700
restart VICTIM
until settled
cut leader others
run 2500
heal
until settled
"""

_APPENDS: Final = """
until settled
writes leader 6
write leader r0 1500
writes leader 5
kill VICTIM
run 300
restart VICTIM
until settled
writes leader 9
crash VICTIM
run 300
restart VICTIM
until settled
writes leader 7
stop VICTIM
run 300
restart VICTIM
until settled
writes leader 4
"""

_CUT_AND_HEALED: Final = """
until settled
writes leader 3
cut leader others
run 3000
until leader
writes leader 5
heal
until settled
"""

_CUT_ONCE_MORE: Final = """
until settled
cut leader others
run 3000
until leader
heal
until settled
"""

_TRUNCATIONS: Final = f"""{_CUT_AND_HEALED}
cut leader others
run 900
crash VICTIM
run 1600
until leader
writes leader 3
heal
restart VICTIM
{_CUT_ONCE_MORE}"""

_TRUNCATIONS_OF_THREE: Final = f"""{_CUT_AND_HEALED}
crash VICTIM
run 1600
until leader
writes leader 3
restart VICTIM
{_CUT_ONCE_MORE}"""
"""Without a cut beside the crash: two of three must be left to elect."""

_SNAPSHOT_WRITES: Final = """
until settled
writes leader 12
run 500
writes leader 10
run 500
kill VICTIM
run 400
restart VICTIM
until settled
writes leader 10
run 500
"""

_INSTALLATION: Final = """
until settled
writes leader 4
crash VICTIM
until leader
writes leader 16
run 62000
writes leader 6
restart VICTIM
until settled
writes leader 6
crash VICTIM
until leader
writes leader 16
run 62000
restart VICTIM
until settled
writes leader 4
"""

_EMPTY_DISK: Final = """
until settled
writes leader 16
run 62000
wipe VICTIM
until leader
restart VICTIM
until settled
writes leader 8
run 1000
"""

_CLEANING: Final = """
until settled
writes leader 16
run 62000
writes leader 16
run 62000
kill VICTIM
run 300
restart VICTIM
until settled
run 62000
"""

_VOTERS: Final = """
until settled
writes leader 4
add 4
until settled
writes leader 3
remove 4
until settled
add 4
until settled
writes leader 3
crash VICTIM
run 1500
restart VICTIM
until settled
remove leader
until settled
writes leader 4
run 1500
"""

_JOINING: Final = """
until settled
writes leader 10
run 62000
add 4
until settled
writes leader 4
wipe VICTIM
restart VICTIM
run 6000
until settled
writes leader 12
run 2000
"""

_ALONE: Final = """
until settled
writes leader 12
crash 1
restart 1
until settled
writes leader 10
run 62000
kill 1
restart 1
until settled
writes leader 12
stop 1
restart 1
until settled
writes leader 12
run 62000
"""


def _variants(cluster: str, victims: tuple[int, ...], seeds: range) -> list[Variant]:
    return [Variant(f"{cluster} seed={seed}", victim) for seed in seeds for victim in victims]


_THREE_VICTIMS: Final = (1, 2, 3)
_SEEDS: Final = range(1, 61)

QUORUM_SCENARIOS: Final = [
    QuorumScenario(
        "votes and elections",
        ELECTIONS,
        [
            *_variants(_THREE, _THREE_VICTIMS, _SEEDS),
            *_variants("voters=1,2,3,4,5", (1, 4), _SEEDS),
        ],
    ),
    QuorumScenario(
        "votes of a dynamic quorum",
        ELECTIONS,
        _variants(f"{_THREE} dynamic", _THREE_VICTIMS, _SEEDS),
    ),
    QuorumScenario(
        "metadata appended and rolled",
        _APPENDS,
        [
            *_variants(f"{_THREE} {_SMALL}", _THREE_VICTIMS, _SEEDS),
            *_variants(f"{_THREE} {_SMALL} idle_interval_ms=400", _THREE_VICTIMS, _SEEDS),
        ],
    ),
    QuorumScenario(
        "metadata truncated",
        _TRUNCATIONS_OF_THREE,
        _variants(f"{_THREE} {_SMALL} idle_interval_ms=250", _THREE_VICTIMS, _SEEDS),
    ),
    QuorumScenario(
        "metadata truncated among five",
        _TRUNCATIONS,
        _variants(f"voters=1,2,3,4,5 {_SMALL} idle_interval_ms=300", (1, 3), _SEEDS),
    ),
    QuorumScenario(
        "snapshots written",
        _SNAPSHOT_WRITES,
        _variants(f"{_THREE} {_SNAPSHOTS}", _THREE_VICTIMS, _SEEDS),
    ),
    QuorumScenario(
        "snapshot fetched and installed",
        _INSTALLATION,
        _variants(f"{_THREE} {_SNAPSHOTS} retention_bytes=900", _THREE_VICTIMS, _SEEDS),
    ),
    QuorumScenario(
        "snapshot fetched to an empty disk",
        _EMPTY_DISK,
        _variants(f"{_THREE} {_SNAPSHOTS} retention_bytes=900", _THREE_VICTIMS, _SEEDS),
    ),
    QuorumScenario(
        "log and snapshots cleaned",
        _CLEANING,
        [
            *_variants(f"{_THREE} {_SNAPSHOTS} retention_bytes=1500", _THREE_VICTIMS, _SEEDS),
            *_variants(f"{_THREE} {_SNAPSHOTS} retention_ms=30000", _THREE_VICTIMS, _SEEDS),
        ],
    ),
    QuorumScenario(
        "voters added and removed",
        _VOTERS,
        _variants(f"{_THREE} observers=4 dynamic {_SMALL}", (1, 2, 3, 4), _SEEDS),
    ),
    QuorumScenario(
        "voter joins behind a snapshot",
        _JOINING,
        _variants(
            f"{_THREE} observers=4 dynamic joins {_SNAPSHOTS} retention_bytes=900",
            (4, 2),
            _SEEDS,
        ),
    ),
    QuorumScenario(
        "quorum of one",
        _ALONE,
        [
            *_variants(f"voters=1 {_SNAPSHOTS} retention_bytes=1200", (1,), _SEEDS),
            *_variants(f"voters=1 dynamic {_SNAPSHOTS} retention_bytes=1200", (1,), _SEEDS),
        ],
    ),
]

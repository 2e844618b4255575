"""KIP-1263: when the targets of a group may be computed again."""

import pytest

from kraft_wire.broker.groups.target_times import may_compute_targets


@pytest.mark.parametrize(
    ("computed_wall_ms", "interval_ms", "wall_ms", "may"),
    [
        (0, 10, 5, True),
        (100, 0, 100, True),
        (100, 10, 109, False),
        (100, 10, 110, True),
        (100, 10, 0, False),
    ],
)
def test_targets_without_a_stamp_or_an_interval_may_be_computed_at_any_time(
    computed_wall_ms: int, interval_ms: int, wall_ms: int, may: bool
) -> None:
    assert may_compute_targets(computed_wall_ms, interval_ms, wall_ms) is may

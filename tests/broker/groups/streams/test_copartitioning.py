"""How many partitions joined topics get: `CopartitionedTopicsEnforcer` of 4.3.1, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kraft_wire.broker.groups.java_collections import java_hash_set
from kraft_wire.broker.groups.streams.topology.copartitioning import copartitioned_counts
from kraft_wire.broker.groups.streams.topology.failures import TopicsUnfit

SIZES = {"source": 6, "other": 6, "odd": 5, "four": 4, "six": 6, "open": 9, "small": 2}
FIXED = {"four", "six"}
FLEXIBLE = {"open", "small"}


@pytest.mark.parametrize(
    ("topics", "decided"),
    [
        ("", {}),
        ("source", {}),
        ("source other", {}),
        ("source other open small", {"open": 6, "small": 6}),
        ("source six open", {"six": 6, "open": 6}),
        ("open small", {"open": 9, "small": 9}),
        ("small", {"small": 2}),
        ("four open", {"four": 4, "open": 4}),
        ("six small", {"six": 6, "small": 6}),
        ("source odd", None),
        ("source four", None),
        ("four six", None),
        ("source odd open", None),
    ],
)
def test_external_topics_decide_then_fixed_ones_then_the_largest(
    topics: str, decided: Mapping[str, int] | None
) -> None:
    group = java_hash_set(topics.split())
    fixed_counts = {SIZES[each] for each in topics.split() if each in FIXED}
    if decided is None:
        with pytest.raises(TopicsUnfit):
            copartitioned_counts(group, FIXED, fixed_counts, FLEXIBLE, SIZES.get)
        return
    assert copartitioned_counts(group, FIXED, fixed_counts, FLEXIBLE, SIZES.get) == decided

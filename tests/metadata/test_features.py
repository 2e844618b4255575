"""Levels of features: what new clusters have, and which levels need those of other features.

`kafka-features version-mapping` and `feature-dependencies` of 4.3.1 print the same.
"""

import pytest

from kraft_wire.metadata.features import RELEASE_LEVELS, default_levels, missing_dependency

FIRST = {
    "group.version": 22,
    "transaction.version": 24,
    "eligible.leader.replicas.version": 26,
    "share.version": 28,
    "streams.version": 29,
}
"""metadata.version of 4.0-IV0, 4.0-IV2, 4.1-IV0, 4.2-IV0 and 4.2-IV1."""
NEWEST = {name: 2 if name == "transaction.version" else 1 for name in FIRST}


@pytest.mark.parametrize("level", sorted(RELEASE_LEVELS.values()))
def test_new_cluster_has_each_feature_from_its_metadata_version_on(level: int) -> None:
    others = {name: NEWEST[name] for name, first in FIRST.items() if level >= first}
    assert default_levels(level) == {"metadata.version": level, **others}


def test_levels_of_metadata_version_have_no_gap() -> None:
    assert sorted(RELEASE_LEVELS.values()) == list(range(7, 31))


@pytest.mark.parametrize(("level", "is_refused"), [(22, True), (23, False), (30, False)])
def test_eligible_leader_replicas_need_4_0_iv1(level: int, is_refused: bool) -> None:
    """KIP-966; the words are those of `Feature.validateVersion`."""
    found = missing_dependency("eligible.leader.replicas.version", 1, {"metadata.version": level})
    words = (
        "eligible.leader.replicas.version could not be set to 1 because it depends on "
        "metadata.version level 23"
    )
    assert found == (words if is_refused else None)


@pytest.mark.parametrize("feature", ["group.version", "eligible.leader.replicas.version"])
def test_level_0_and_other_features_need_nothing(feature: str) -> None:
    level = 0 if feature.startswith("eligible") else 1
    assert missing_dependency(feature, level, {}) is None
    assert missing_dependency(feature, level, {"metadata.version": 7}) is None

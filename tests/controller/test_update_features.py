"""UpdateFeatures: which nodes block a level, and the level of the quorum."""

import pytest

from kraft_wire.controller.handlers.update_features import quorum_refused
from kraft_wire.controller.requests import decide
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.controller_registration import (
    Feature,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from tests.controller.cluster import Context, OneNodeCluster
from tests.controller.plain_requests import registration


def raised(
    cluster: OneNodeCluster, feature: str, level: int, kind: int = 1
) -> UpdateFeaturesResponse:
    update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
    response = cluster.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert isinstance(response, UpdateFeaturesResponse)
    return response


def test_voter_that_has_not_registered_blocks_an_upgrade() -> None:
    cluster = OneNodeCluster(brokers=0)
    cluster.controller.voter_ids = (1, 7)
    words = "controller 7 has not registered, and may not support this feature"
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")
    cluster.ask(registration(), 0)
    assert raised(cluster, "metadata.version", 30).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("level", "is_raised"), [(14, True), (15, False)])
def test_voters_register_from_3_7_iv0_on_and_are_not_waited_for_before(
    level: int, is_raised: bool
) -> None:
    """KIP-919: below that level no controller can register, and none would ever be upgraded."""
    cluster = OneNodeCluster(brokers=0)
    old = FeatureLevelRecord(name="metadata.version", feature_level=level)
    cluster.commit([VersionedRecord(old)])
    cluster.controller.voter_ids = (1, 7)
    answer = raised(cluster, "metadata.version", 30)
    assert (answer.error_code == ErrorCode.NONE) == is_raised
    assert (cluster.loader.image.metadata_version == 30) == is_raised


@pytest.mark.parametrize("kind", [1, 2, 3])
def test_level_that_is_there_already_is_neither_raised_nor_lowered(kind: int) -> None:
    cluster = OneNodeCluster(brokers=0)
    level = cluster.loader.image.metadata_version
    assert raised(cluster, "metadata.version", level, kind).error_code == ErrorCode.NONE
    assert cluster.loader.image.metadata_version == level


def test_node_that_does_not_support_a_level_blocks_it() -> None:
    cluster = OneNodeCluster(brokers=1)
    words = "Broker 1 does not support this feature."
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")
    cluster = OneNodeCluster(brokers=0)
    old = [Feature(name="metadata.version", min_supported_version=7, max_supported_version=25)]
    cluster.ask(registration(features=old), 0)
    words = "Controller 7 only supports versions 7-25"
    assert words in (raised(cluster, "metadata.version", 30).error_message or "")


def test_level_of_the_quorum_is_asked_for_and_its_refusal_answered() -> None:
    cluster = OneNodeCluster(brokers=0)
    update = FeatureUpdateKey(feature="kraft.version", max_version_level=1)
    request = UpdateFeaturesRequest(feature_updates=[update], validate_only=True)
    words = "Local controller 1 does not support this feature."
    assert words in (raised(cluster, "kraft.version", 1).error_message or "")
    cluster.controller.kraft_version = 0
    result = decide(cluster.controller, Context(2), request)
    assert result.quorum_upgrade is not None
    assert (result.quorum_upgrade.level, result.quorum_upgrade.validate_only) == (1, True)
    cluster.controller.kraft_version = 1
    result = decide(cluster.controller, Context(2), request)
    assert result.quorum_upgrade is None, "the level is there already"
    refused = quorum_refused(request, ErrorCode.INVALID_UPDATE_VERSION)
    assert refused.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert refused.error_message == (
        "The update failed for all features since the following feature had an error: Invalid "
        "upgrade of kraft.version to KRAFT_VERSION_1 because not all of the voters support it"
    )
    refused = quorum_refused(request, ErrorCode.REQUEST_TIMED_OUT)
    assert "REQUEST_TIMED_OUT" in (refused.error_message or "")


def test_features_are_changed_in_the_order_of_java_s_map() -> None:
    """QuorumController.updateFeatures of 4.3.1 puts them into a HashMap."""
    names = ["transaction.version", "share.version", "group.version", "streams.version"]
    ordered = ["group.version", "share.version", "streams.version", "transaction.version"]
    for given in (names, names[::-1]):
        cluster = OneNodeCluster(brokers=0)
        updates = [FeatureUpdateKey(feature=each, max_version_level=1) for each in given]
        result = decide(
            cluster.controller, Context(2), UpdateFeaturesRequest(feature_updates=updates)
        )
        made = [each.record for each in result.records]
        assert [each.name for each in made if isinstance(each, FeatureLevelRecord)] == ordered
        for each in updates:
            each.max_version_level = 99
        result = decide(
            cluster.controller, Context(2), UpdateFeaturesRequest(feature_updates=updates)
        )
        assert isinstance(result.response, UpdateFeaturesResponse)
        assert f"for feature {ordered[0]}. " in (result.response.error_message or "")


@pytest.mark.parametrize("feature", ["group.version", "eligible.leader.replicas.version"])
def test_a_cluster_of_before_is_upgraded(feature: str) -> None:
    """848-FEAT-01: a level is not finalised until an administrator asks for it (KIP-966 too)."""
    cluster = OneNodeCluster(brokers=0)
    assert cluster.controller.image.finalized_features.get(feature, 0) == 0
    assert raised(cluster, feature, 2).error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert raised(cluster, feature, 1).error_code == ErrorCode.NONE
    assert cluster.controller.image.finalized_features[feature] == 1

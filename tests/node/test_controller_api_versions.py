"""ApiVersions of a controller's listener: who may ask, and what each version shows (KIP-511)."""

import pytest

from kraft_wire.metadata.image import FeatureRange, MetadataImage
from kraft_wire.node.controller.descriptions import api_versions
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode

SUPPORTED = {"kraft.version": FeatureRange(0, 1), "metadata.version": FeatureRange(7, 30)}


def asked(
    version: int, name: str = "kraft-wire", software_version: str = "1.0", *, kraft_version: int = 1
) -> ApiVersionsResponse:
    request = ApiVersionsRequest(
        client_software_name=name, client_software_version=software_version
    )
    served = {18: (0, 4), 52: (0, 2)}
    return api_versions(version, request, served, MetadataImage(), kraft_version, SUPPORTED)


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("spoilt", ["", "-a", "a-", ".a", "a.", "a b", "a_b", "ä"])
def test_software_that_kafka_would_not_take_is_refused_where_it_is_named(
    version: int, spoilt: str
) -> None:
    refused = ErrorCode.INVALID_REQUEST if version >= 3 else ErrorCode.NONE
    assert asked(version, name=spoilt).error_code == refused
    assert asked(version, software_version=spoilt).error_code == refused


@pytest.mark.parametrize("taken", ["a", "7", "a-b", "a.b", "apache-kafka-java", "4.3.1"])
def test_software_that_kafka_takes_is_taken(taken: str) -> None:
    assert asked(3, name=taken, software_version=taken).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
def test_features_are_shown_from_version_3_on_and_those_from_0_from_version_4_on(
    version: int,
) -> None:
    """Java clients of older versions throw at a range that begins with 0 (KAFKA-17492)."""
    answer = asked(version)
    keys = [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys]
    assert keys == [(18, 0, 4), (52, 0, 2)]
    shown = [(each.name, each.min_version, each.max_version) for each in answer.supported_features]
    kraft, metadata = ("kraft.version", 0, 1), ("metadata.version", 7, 30)
    assert shown == {3: [metadata], 4: [kraft, metadata]}.get(version, [])
    finalized = [
        (each.name, each.min_version_level, each.max_version_level)
        for each in answer.finalized_features
    ]
    assert ("kraft.version", 1, 1) in finalized or version < 3


def test_a_feature_at_level_0_is_not_finalized() -> None:
    names = {each.name for each in asked(4, kraft_version=0).finalized_features}
    assert "kraft.version" not in names

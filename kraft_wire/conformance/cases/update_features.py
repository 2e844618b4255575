"""UpdateFeatures, API key 57: levels of the cluster's features (KIP-584, KIP-778)."""

from typing import Final

from kraft_wire.conformance import expect
from kraft_wire.conformance.case import case
from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kraft_wire.wire.generated.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_SOURCE: Final = "org.apache.kafka.controller.FeatureControlManager, updateFeatures"
_VALIDATION_SINCE: Final = 1
_RESULTS_UNTIL: Final = 1
_UPGRADE, _SAFE_DOWNGRADE = 1, 2
_WITH_NEW_RECORDS: Final = 30
"""4.3-IV0, a level of metadata.version that added fields of records."""


def _refused(broker: Subject, version: int, *updates: FeatureUpdateKey) -> None:
    request = UpdateFeaturesRequest(
        timeout_ms=10_000, feature_updates=list(updates), validate_only=True
    )
    answer = broker.ask(request, version, UpdateFeaturesResponse)
    codes = [answer.error_code, *(each.error_code for each in answer.results)]
    expect.true(any(codes), "an error", codes, "error_code")


def _metadata_version(broker: Subject) -> int:
    """Return the finalized level."""
    greeting = ApiVersionsRequest(client_software_name="conform", client_software_version="1.0")
    found = broker.prepare(greeting, ApiVersionsResponse).finalized_features
    return next(each.max_version_level for each in found if each.name == "metadata.version")


def _update(feature: str, level: int, upgrade_type: int = _UPGRADE) -> FeatureUpdateKey:
    return FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def unknown_feature(broker: Subject, version: int) -> None:
    """A feature that does not exist is refused.

    Validate level 1 of an unknown feature.
    """
    _refused(broker, version, _update("made-up.version", 1))


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def level_too_high(broker: Subject, version: int) -> None:
    """A level that no node supports is refused.

    Validate level 999 of metadata.version.
    """
    _refused(broker, version, _update("metadata.version", 999))


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def negative_level(broker: Subject, version: int) -> None:
    """A level below 0 is refused.

    Validate level -1 of metadata.version.
    """
    _refused(broker, version, _update("metadata.version", -1))


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def unknown_kind_of_update(broker: Subject, version: int) -> None:
    """An unknown kind of update is refused.

    Validate an update of type 7.
    """
    _refused(broker, version, _update("transaction.version", 1, upgrade_type=7))


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def downgrade_as_an_upgrade(broker: Subject, version: int) -> None:
    """A lower level needs a downgrade.

    Validate an upgrade of metadata.version to level 7.
    """
    _refused(broker, version, _update("metadata.version", 7))


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def present_level(broker: Subject, version: int) -> None:
    """A feature may be set to the level that it has.

    Ask for the finalized level of metadata.version with ApiVersions, validate it.
    """
    level = _metadata_version(broker)
    request = UpdateFeaturesRequest(
        timeout_ms=10_000,
        feature_updates=[_update("metadata.version", level)],
        validate_only=True,
    )
    answer = broker.ask(request, version, UpdateFeaturesResponse)
    codes = [answer.error_code, *(each.error_code for each in answer.results)]
    expect.true(not any(codes), "no error", codes, "error_code")


@case("UpdateFeatures", _SOURCE, since=_VALIDATION_SINCE)
def downgrade_that_loses_fields(broker: Subject, version: int) -> None:
    """A safe downgrade below a level that added fields to records is refused.

    Validate a safe downgrade of metadata.version from level 30 or higher to level 29.
    """
    level = _metadata_version(broker)
    if level < _WITH_NEW_RECORDS:
        raise NotSupported(f"metadata.version is {level}")
    _refused(broker, version, _update("metadata.version", _WITH_NEW_RECORDS - 1, _SAFE_DOWNGRADE))

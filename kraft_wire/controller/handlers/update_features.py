"""UpdateFeatures, API key 57, versions 0-2.

Behaviour:   finalizes all levels of a request together or none; every registered broker and
             controller must support them; metadata.version can be lowered only if no record format
             changed in between; the quorum, not this handler, changes kraft.version (KIP-853);
             `validate_only` checks
Versions:    v0 has no kind of change, all are upgrades · v1 upgrade types (KIP-778) · v2 one error
             for all features (KIP-1022)
Left out:    nothing
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kraft_wire.controller.controller import (
    Controller,
    ControllerContext,
    ControllerResult,
    QuorumUpgrade,
)
from kraft_wire.controller.elr_settings import explicit_min_isr_records
from kraft_wire.controller.java_map import java_map_order
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.features import (
    CONTROLLERS_FROM,
    ELR_VERSION,
    KRAFT_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    missing_dependency,
)
from kraft_wire.metadata.image import FeatureRange
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.feature_level_record import FeatureLevelRecord
from kraft_wire.wire.generated.update_features import (
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

__all__ = ["handle", "quorum_refused", "refuse"]

_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_LAST_VERSION_WITH_RESULTS: Final = 1
_CHANGED_FORMATS: Final = (8, 11, 13, 14, 15, 17, 23, 30)
"""Levels of metadata.version that added records or fields."""
_NONE: Final = FeatureRange(0, 0)


class _Update(NamedTuple):
    """One requested level."""

    feature: str
    level: int
    kind: int


def handle(
    controller: Controller, context: ControllerContext, request: UpdateFeaturesRequest
) -> ControllerResult:
    """Finalise levels of features.

    Errors, first match wins, for the whole request, all INVALID_UPDATE_VERSION: unknown kind of
    change, below 0, not supported here, by a broker or by a controller, lower without a downgrade,
    higher with one, a downgrade that would lose metadata, kraft.version downwards, unknown to the
    release, a level that another feature's is too low for.
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    updates = {
        each.feature: _Update(each.feature, each.max_version_level, each.upgrade_type)
        for each in request.feature_updates
    }
    records: list[VersionedRecord] = []
    upgrade = None
    try:
        for update in (updates[name] for name in java_map_order(updates)):
            _check(controller, update, updates)
            if update.feature == ELR_VERSION and update.level > 0:
                records += explicit_min_isr_records(controller.image, controller.settings)
            if update.feature != KRAFT_VERSION:
                record = FeatureLevelRecord(name=update.feature, feature_level=update.level)
                records.append(VersionedRecord(record))
            elif update.level != controller.kraft_version:
                upgrade = QuorumUpgrade(update.level, request.validate_only)
    except Refusal as refusal:
        return ControllerResult(refuse(request, refusal.error, refusal.message))
    response = UpdateFeaturesResponse(error_message=None, results=[])
    if context.api_version <= _LAST_VERSION_WITH_RESULTS:
        response.results = [
            UpdatableFeatureResult(feature=name, error_message="NONE") for name in updates
        ]
    return ControllerResult(
        response, () if request.validate_only else records, quorum_upgrade=upgrade
    )


def refuse(
    request: UpdateFeaturesRequest, error: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    """Return the answer that refuses the request as a whole."""
    assert error is not ErrorCode.NONE
    words = message
    if error is ErrorCode.INVALID_UPDATE_VERSION:
        words = (
            "The update failed for all features since the following feature had an error: "
            f"{message}"
        )
    return UpdateFeaturesResponse(error_code=error, error_message=words, results=[])


def quorum_refused(request: UpdateFeaturesRequest, error: ErrorCode) -> UpdateFeaturesResponse:
    """Return the answer if the quorum refuses the level of kraft.version."""
    assert error is not ErrorCode.NONE
    words = f"The quorum answered {error.name} to the change of {KRAFT_VERSION}."
    if error is ErrorCode.INVALID_UPDATE_VERSION:
        level = next(
            each.max_version_level
            for each in request.feature_updates
            if each.feature == KRAFT_VERSION
        )
        words = (
            f"Invalid upgrade of {KRAFT_VERSION} to KRAFT_VERSION_{level} because not all of the "
            "voters support it"
        )
    return refuse(request, error, words)


def _check(controller: Controller, update: _Update, updates: Mapping[str, _Update]) -> None:
    """Check one level; INVALID_UPDATE_VERSION with Kafka's words."""
    current = _current_level(controller, update.feature)
    assert current >= 0, (update.feature, current)
    problem = None
    if update.kind not in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE):
        problem = "The controller does not support the given upgrade type."
    elif update.level < 0:
        problem = "A feature version cannot be less than 0."
    else:
        problem = next(_not_supported(controller, update), None) or _wrong_way(update, current)
    if problem is None and update.feature == METADATA_VERSION:
        _check_downgrade(update, current)
    elif problem is None and update.feature == KRAFT_VERSION and update.level < current:
        problem = "Can't downgrade the version of this feature."
    elif problem is None and update.feature not in SUPPORTED_FEATURES:
        problem = f"Feature {update.feature} not found."
    elif problem is None:
        proposed = {name: each.level for name, each in updates.items()}
        levels = {**controller.image.finalized_features, **proposed}
        problem = missing_dependency(update.feature, update.level, levels)
    if problem is not None:
        words = f"Invalid update version {update.level} for feature {update.feature}. {problem}"
        raise Refusal(ErrorCode.INVALID_UPDATE_VERSION, words)


def _current_level(controller: Controller, feature: str) -> int:
    if feature == KRAFT_VERSION:
        return controller.kraft_version or 0
    level = controller.image.finalized_features.get(feature, 0)
    assert level >= 0, feature
    return level


def _not_supported(controller: Controller, update: _Update) -> Iterator[str]:
    """Yield why this node, a broker or a controller does not support a level."""
    supported = dict(SUPPORTED_FEATURES)
    if controller.kraft_version is None:
        del supported[KRAFT_VERSION]
    assert METADATA_VERSION in supported, supported
    yield from _outside(f"Local controller {controller.node_id}", supported, update)
    image = controller.image
    for broker_id in sorted(image.brokers):
        yield from _outside(f"Broker {broker_id}", image.brokers[broker_id].features, update)
    if image.metadata_version < CONTROLLERS_FROM:
        return
    for controller_id in sorted(image.controllers):
        if controller_id != controller.node_id:
            features = image.controllers[controller_id].features
            yield from _outside(f"Controller {controller_id}", features, update)
    for voter_id in controller.voter_ids:
        if voter_id != controller.node_id and voter_id not in image.controllers:
            yield f"controller {voter_id} has not registered, and may not support this feature"


def _outside(who: str, features: Mapping[str, FeatureRange], update: _Update) -> Iterator[str]:
    levels = features.get(update.feature, _NONE)
    assert levels.min_level <= levels.max_level, (who, levels)
    if levels.min_level <= update.level <= levels.max_level:
        return
    if levels.max_level == 0:
        yield f"{who} does not support this feature."
    else:
        yield f"{who} only supports versions {levels.min_level}-{levels.max_level}"


def _wrong_way(update: _Update, current: int) -> str | None:
    assert update.kind in (_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE), update
    if update.level < current and update.kind == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and update.kind != _UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _check_downgrade(update: _Update, current: int) -> None:
    """Refuse a lower metadata.version where records would be lost; upwards is always fine."""
    assert update.feature == METADATA_VERSION
    if not any(update.level < each <= current for each in _CHANGED_FORMATS):
        return
    problem = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.kind == _UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata "
        "information."
    )
    words = f"Unsupported metadata.version downgrade from {current} to {update.level}. {problem}"
    raise Refusal(ErrorCode.INVALID_UPDATE_VERSION, words)

"""BrokerRegistration, API key 62, versions 0-4.

Behaviour:   a new incarnation is fenced; its epoch is the offset of the first record of its
             registration, and it is removed from every ISR; the same incarnation changes its
             registration and keeps epoch, fencing and shutdown (KIP-631)
Versions:    v1 brokers that migrate from ZooKeeper, refused · v2 log directories (KIP-858) · v3 the
             epoch before a clean stop (KIP-966) · v4 the same, features from level 0 on
Left out:    nothing
"""

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.broker_changes import BrokerChanges
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.directory_ids import RESERVED_DIRECTORIES
from kraft_wire.metadata.features import DIRECTORIES_FROM, KRAFT_VERSION, METADATA_VERSION
from kraft_wire.metadata.image import BrokerImage
from kraft_wire.metadata.node_records import broker_record
from kraft_wire.metadata.replay_nodes import endpoint_images, feature_images
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["handle", "refuse", "register"]

_PREVIOUS_EPOCH_FROM: Final = 3
_SECURITY_PROTOCOLS: Final = range(4)


def handle(
    controller: Controller, context: ControllerContext, request: BrokerRegistrationRequest
) -> ControllerResult:
    """Register a broker, or amend its registration.

    Errors, first match wins: INVALID_REQUEST (what no registration can have),
    INCONSISTENT_CLUSTER_ID, DUPLICATE_BROKER_REGISTRATION (another incarnation has a session),
    BROKER_ID_NOT_REGISTERED (a broker that migrates), INVALID_REGISTRATION (log directories),
    UNSUPPORTED_VERSION (a feature), INVALID_REGISTRATION (no metadata.version),
    UNSUPPORTED_VERSION (a finalised feature that it does not name).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    try:
        _check_form(request)
        _check_identity(controller, request, context.now_ms)
        if controller.image.metadata_version >= DIRECTORIES_FROM:
            _check_directories(controller, request)
        _check_features(controller, request)
    except Refusal as refusal:
        return ControllerResult(refuse(request, refusal.error, refusal.message))
    tells_epoch = context.api_version >= _PREVIOUS_EPOCH_FROM
    return register(controller, request, request.previous_broker_epoch if tells_epoch else None)


def register(
    controller: Controller, request: BrokerRegistrationRequest, previous_broker_epoch: int | None
) -> ControllerResult:
    """Return the records that register a broker, unchecked: a node trusts its own broker.

    `previous_broker_epoch` is that of a previous incarnation that stopped cleanly, None otherwise.
    """
    image, broker_id = controller.image, request.broker_id
    assert broker_id >= 0, broker_id
    known = image.brokers.get(broker_id)
    is_amended = known is not None and known.incarnation_id == request.incarnation_id
    left = []
    if not is_amended:
        is_clean = known is not None and known.broker_epoch == previous_broker_epoch
        left = BrokerChanges(image, controller.settings, broker_id).restart(is_clean=is_clean)
    level = image.metadata_version
    assert not left or not is_amended, left
    assert level > 0, "an active controller has a metadata.version"
    registered = BrokerImage(
        broker_id=broker_id,
        broker_epoch=known.broker_epoch if known and is_amended else controller.next_offset,
        incarnation_id=request.incarnation_id,
        endpoints=endpoint_images(request.listeners),
        features=feature_images(request.features),
        rack=request.rack,
        fenced=known.fenced if known and is_amended else True,
        in_controlled_shutdown=known.in_controlled_shutdown if known and is_amended else False,
        # Non-obvious 22: an older level has no field for them.
        log_dirs=tuple(request.log_dirs) if level >= DIRECTORIES_FROM else (),
    )
    assert registered.broker_epoch <= controller.next_offset, registered
    response = BrokerRegistrationResponse(broker_epoch=registered.broker_epoch)
    return ControllerResult(response, [*left, broker_record(registered, level)], is_atomic=False)


def refuse(
    request: BrokerRegistrationRequest, error: ErrorCode, message: str | None
) -> BrokerRegistrationResponse:
    """Return the answer that refuses the request; it has no error message."""
    assert error is not ErrorCode.NONE
    return BrokerRegistrationResponse(error_code=error)


def _check_form(request: BrokerRegistrationRequest) -> None:
    """Refuse an invalid registration, so that every node can replay the record."""
    problem = None
    if request.broker_id < 0:
        problem = f"A broker's id cannot be {request.broker_id}."
    for each in request.listeners:
        if not each.name or each.security_protocol not in _SECURITY_PROTOCOLS:
            problem = f"Listener {each.name!r} has no name, or protocol {each.security_protocol}."
    for feature in request.features:
        if min(feature.min_supported_version, feature.max_supported_version) < 0:
            problem = f"A level of {feature.name} is negative."
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_REQUEST, problem)


def _check_identity(
    controller: Controller, request: BrokerRegistrationRequest, now_ms: int
) -> None:
    """Refuse brokers of another cluster, a second broker with an id, and ZooKeeper's."""
    if request.cluster_id != controller.cluster_id:
        words = f"Expected cluster ID {controller.cluster_id}, but got {request.cluster_id}."
        raise Refusal(ErrorCode.INCONSISTENT_CLUSTER_ID, words)
    assert request.broker_id >= 0, request.broker_id
    known = controller.image.brokers.get(request.broker_id)
    if known is not None and known.incarnation_id != request.incarnation_id:
        timeout_ms = controller.session_timeout_ms
        if controller.sessions.is_valid(request.broker_id, timeout_ms, now_ms):
            words = "Another broker is registered with that broker id."
            raise Refusal(ErrorCode.DUPLICATE_BROKER_REGISTRATION, words)
    if request.is_migrating_zk_broker:
        words = "Controller does not support registering ZK brokers."
        raise Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, words)


def _check_directories(controller: Controller, request: BrokerRegistrationRequest) -> None:
    """Refuse missing, reserved or repeated directories, and those of another broker (KIP-858)."""
    directories = request.log_dirs
    assert all(len(each) == 16 for each in directories), directories
    problem = None
    if not directories:
        problem = "No directories specified in request"
    elif any(int.from_bytes(each) < RESERVED_DIRECTORIES for each in directories):
        problem = "Reserved directory ID in request"
    elif len(set(directories)) != len(directories):
        problem = "Duplicate directory ID in request"
    else:
        problem = _owner(controller, request.broker_id, directories)
    if problem is not None:
        raise Refusal(ErrorCode.INVALID_REGISTRATION, problem)


def _owner(controller: Controller, broker_id: int, directories: Sequence[Uuid]) -> str | None:
    assert directories, broker_id
    for broker in controller.image.brokers.values():
        if broker.broker_id != broker_id:
            for directory in broker.log_dirs:
                if directory in directories:
                    words = f"Broker {broker.broker_id} is already registered with directory"
                    return f"{words} {directory.hex()}"
    return None


def _check_features(controller: Controller, request: BrokerRegistrationRequest) -> None:
    """Refuse a broker that does not support a level that is finalised (KIP-584)."""
    finalized = dict(controller.image.finalized_features)
    finalized[KRAFT_VERSION] = controller.kraft_version or 0
    assert METADATA_VERSION in finalized, "an active controller has a metadata.version"
    for feature in request.features:
        level = finalized.get(feature.name, 0)
        low, high = feature.min_supported_version, feature.max_supported_version
        if not low <= level <= high:
            raise _unsupported(feature.name, level, low, high)
    named = {feature.name for feature in request.features}
    if METADATA_VERSION not in named:
        words = "Request features do not contain 'metadata.version'"
        raise Refusal(ErrorCode.INVALID_REGISTRATION, words)
    for name, level in finalized.items():
        if level and name not in named:
            raise _unsupported(name, level, 0, 0)


def _unsupported(name: str, level: int, low: int, high: int) -> Refusal:
    assert not low <= level <= high, name
    words = (
        f"Unable to register because the broker does not support finalized version {level} of "
        f"{name}. The broker wants a version between {low} and {high}, inclusive."
    )
    return Refusal(ErrorCode.UNSUPPORTED_VERSION, words)

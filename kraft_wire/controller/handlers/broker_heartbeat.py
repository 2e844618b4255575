"""BrokerHeartbeat, API key 63, versions 0-2.

Behaviour:   renews a broker's session, and requests fencing, unfencing or a stop; a broker is
             unfenced once it has read its own registration; a broker that leads partitions may stop
             when others lead them and all active brokers have read that (KIP-631, KIP-841)
Versions:    v1 failed directories (KIP-858) · v2 cordoned directories (KIP-1066)
Left out:    nothing
"""

from collections.abc import Sequence
from enum import Enum
from functools import partial

from kraft_wire.controller.broker_changes import BrokerChanges
from kraft_wire.controller.broker_sessions import BrokerSession
from kraft_wire.controller.controller import Controller, ControllerContext, ControllerResult
from kraft_wire.metadata.features import CORDONED_FROM, DIRECTORIES_FROM
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["BrokerControlState", "handle", "next_state", "refuse"]


class BrokerControlState(Enum):
    """The states that the controller permits a broker."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"


def handle(
    controller: Controller, context: ControllerContext, request: BrokerHeartbeatRequest
) -> ControllerResult:
    """Record contact with a broker, and answer with its permitted state.

    Errors: STALE_BROKER_EPOCH (not registered, or another epoch).
    """
    assert request.MIN_VERSION <= context.api_version <= request.MAX_VERSION, context.api_version
    image, broker_id = controller.image, request.broker_id
    broker = image.brokers.get(broker_id)
    if broker is None or broker.broker_epoch != request.broker_epoch:
        return ControllerResult(refuse(request, ErrorCode.STALE_BROKER_EPOCH, None))
    session = controller.sessions[broker_id]
    changes = BrokerChanges(image, controller.settings, broker_id)
    state = _state(session, is_fenced=broker.fenced)
    lowest_offset = controller.sessions.lowest_active_offset(image.brokers)
    assert session.registered_at >= broker.broker_epoch, session
    following = next_state(state, request, session, changes, lowest_offset)
    records = [] if following is state else _records(changes, following, request.offline_log_dirs)
    session.contact_ms, session.metadata_offset = context.now_ms, request.current_metadata_offset
    if image.metadata_version >= DIRECTORIES_FROM:
        records += changes.directories_offline(request.offline_log_dirs)
    if image.metadata_version >= CORDONED_FROM:
        records += changes.directories_cordoned(request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= session.registered_at,
        is_fenced=following in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW),
        should_shut_down=following is BrokerControlState.SHUTDOWN_NOW,
    )
    assert response.is_fenced or not response.should_shut_down, response
    begins = following is BrokerControlState.CONTROLLED_SHUTDOWN and following is not state
    appended = partial(_begin_shutdown, session) if begins else None
    return ControllerResult(response, records, is_atomic=False, appended=appended)


def refuse(
    request: BrokerHeartbeatRequest, error: ErrorCode, message: str | None
) -> BrokerHeartbeatResponse:
    """Return the answer that refuses the request; it has no error message."""
    assert error is not ErrorCode.NONE
    return BrokerHeartbeatResponse(error_code=error)


def next_state(
    state: BrokerControlState,
    request: BrokerHeartbeatRequest,
    session: BrokerSession,
    changes: BrokerChanges,
    lowest_active_offset: int,
) -> BrokerControlState:
    """Return the next state of a broker, by its heartbeat and its present state."""
    assert state is not BrokerControlState.SHUTDOWN_NOW, "a stopping broker sends no more requests"
    if state is BrokerControlState.FENCED:
        if request.want_shut_down:
            return BrokerControlState.SHUTDOWN_NOW
        is_caught_up = request.current_metadata_offset >= session.registered_at
        return BrokerControlState.UNFENCED if is_caught_up and not request.want_fence else state
    if state is BrokerControlState.UNFENCED:
        if request.want_fence:
            return (
                BrokerControlState.SHUTDOWN_NOW
                if request.want_shut_down
                else BrokerControlState.FENCED
            )
        if not request.want_shut_down:
            return state
        return (
            BrokerControlState.CONTROLLED_SHUTDOWN
            if changes.leads()
            else BrokerControlState.SHUTDOWN_NOW
        )
    assert state is BrokerControlState.CONTROLLED_SHUTDOWN, state
    if changes.leads() or session.controlled_shutdown_offset > lowest_active_offset:
        return state
    return BrokerControlState.SHUTDOWN_NOW


def _state(session: BrokerSession, *, is_fenced: bool) -> BrokerControlState:
    if is_fenced:
        assert session.controlled_shutdown_offset < 0, session
        return BrokerControlState.FENCED
    if session.controlled_shutdown_offset >= 0:
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.UNFENCED


def _records(
    changes: BrokerChanges, following: BrokerControlState, failed: Sequence[Uuid]
) -> list[VersionedRecord]:
    """Return the records of a broker's new state: its registration and its partitions."""
    if following is BrokerControlState.UNFENCED:
        return changes.unfence(failed)
    if following is BrokerControlState.CONTROLLED_SHUTDOWN:
        assert changes.leads(), "a broker without partitions to lead stops at once"
        return changes.enter_controlled_shutdown()
    return changes.fence()


def _begin_shutdown(session: BrokerSession, offset: int) -> None:
    """Set the offset that active brokers must apply before this one may stop."""
    assert session.controlled_shutdown_offset < 0 <= offset, session
    session.controlled_shutdown_offset = offset

"""Calls that fail before or after their decision: errors and messages as Kafka's."""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.share_persister import PersisterResult
from kraft_wire.broker.share_state.calls import CallKind
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["append_failure", "commit_failure", "lookup_failure"]

_WORDS: Final[Mapping[CallKind, str]] = {
    CallKind.INITIALIZE: "Unable to initialize share group state: ",
    CallKind.READ: "Unable to read share group state: ",
    CallKind.WRITE: "Unable to write share group state: ",
    CallKind.DELETE: "Unable to delete share group state: ",
    CallKind.SUMMARY: "Unable to read share group state summary: ",
}
_APPENDED: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
"""The append's error, whose message stands under the coordinator's error."""
_COMMITTED: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.REQUEST_TIMED_OUT
}
"""The same of the wait for the other replicas."""


def lookup_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer of a broker that does not coordinate the share partition now."""
    return PersisterResult(error, _WORDS[kind] + error.message)


def append_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer where nothing was written."""
    return PersisterResult(error, _WORDS[kind] + _APPENDED.get(error, error).message)


def commit_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer where it is not known whether what was written stays."""
    return PersisterResult(error, _WORDS[kind] + _COMMITTED.get(error, error).message)

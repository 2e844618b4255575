"""Calls that fail before or after their decision: errors and messages as Kafka's."""

from collections.abc import Mapping
from typing import Final

from kraft_wire.broker.share_persister import PersisterResult
from kraft_wire.broker.share_state.calls import ERROR_WORDS, CallKind
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["append_failure", "commit_failure", "lookup_failure"]

_WORDS: Final[Mapping[CallKind, str]] = {
    CallKind.INITIALIZE: "Unable to initialize share group state: ",
    CallKind.READ: "Unable to read share group state: ",
    CallKind.WRITE: "Unable to write share group state: ",
    CallKind.DELETE: "Unable to delete share group state: ",
    CallKind.SUMMARY: "Unable to read share group state summary: ",
}
_APPEND_WORDS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: (
        "Messages are rejected since there are fewer in-sync replicas than required."
    ),
    ErrorCode.NOT_COORDINATOR: (
        "For requests intended only for the leader, this error indicates that the broker is not the"
        " current leader. For requests intended for any replica, this error indicates that the"
        " broker is not a replica of the topic partition."
    ),
}
"""The append's own message, under the coordinator's error."""
_TIMED_OUT: Final = "The request timed out."


def lookup_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer of a broker that does not coordinate the share partition now."""
    return PersisterResult(error, _WORDS[kind] + ERROR_WORDS[error])


def append_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer where nothing was written."""
    words = _APPEND_WORDS.get(error) or ERROR_WORDS.get(error, error.name)
    return PersisterResult(error, _WORDS[kind] + words)


def commit_failure(kind: CallKind, error: ErrorCode) -> PersisterResult:
    """Return the answer where it is not known whether what was written stays."""
    if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        return PersisterResult(error, _WORDS[kind] + _TIMED_OUT)
    return PersisterResult(error, _WORDS[kind] + ERROR_WORDS.get(error, error.name))

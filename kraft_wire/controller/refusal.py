"""The refusal of a request or a part of it: an error code with its message for the answer.

Raised inside a handler's checks and caught by the same handler, per topic or resource: a refusal
never leaves the module that answers.
"""

from typing import Final, Self

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = [
    "BATCH_BYTES_MAX",
    "BATCH_RECORDS_MAX",
    "TOO_LARGE",
    "Refusal",
    "check_room",
    "is_too_large",
]

BATCH_RECORDS_MAX: Final = 10_000
"""Most records of one atomic change, as in Kafka."""

BATCH_BYTES_MAX: Final = 8_000_000
"""Bytes of the records of one change: a batch of the metadata log holds 8 MiB, framing included."""

TOO_LARGE: Final = "Unable to perform excessively large batch operation."
"""The message of 4.3.1 for POLICY_VIOLATION: a request with too many records."""

_MESSAGE_CHARACTERS_MAX: Final = 4_000


class Refusal(Exception):
    """The reason why one part of a request is refused."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        assert error is not ErrorCode.NONE
        self.error = error
        self.message = message if message is None else _shortened(message)

    @classmethod
    def of(cls, error: ErrorCode) -> Self:
        """Return a refusal with Kafka's own message of the error."""
        assert error is not ErrorCode.UNKNOWN_SERVER_ERROR, "a refusal says what is wrong"
        return cls(error, error.message)


def _shortened(message: str) -> str:
    """Return a message cut to the length of a string: it may quote a string of any length."""
    shown = message
    if len(message) > _MESSAGE_CHARACTERS_MAX:
        shown = f"{message[:_MESSAGE_CHARACTERS_MAX]}…"
    assert len(shown) <= _MESSAGE_CHARACTERS_MAX + 1
    return shown


def is_too_large(records_count: int) -> bool:
    """Return whether a change has more records than 4.3.1 allows in one request."""
    assert records_count >= 0, records_count
    return records_count > BATCH_RECORDS_MAX


def check_room(records_count: int, what: str = "changes") -> None:
    """Refuse a change that does not fit into one batch: POLICY_VIOLATION."""
    if is_too_large(records_count):
        words = f"Excessively large number of {what} per request."
        raise Refusal(ErrorCode.POLICY_VIOLATION, words)

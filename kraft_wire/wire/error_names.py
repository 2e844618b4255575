"""Error codes in messages, also those of a peer's later release: as errors, and as names."""

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["error_name", "error_of"]


def error_of(code: int) -> ErrorCode:
    """Return an error; an unknown code is UNKNOWN_SERVER_ERROR, as `Errors.forCode` has it."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def error_name(code: int) -> str:
    """Return Kafka's name of an error, or its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"

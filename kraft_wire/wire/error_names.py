"""Names of error codes for people, also for unknown codes of a peer."""

from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["error_name"]


def error_name(code: int) -> str:
    """Return Kafka's name of an error, or its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"

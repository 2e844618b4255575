"""Why a request about a group is refused, with the words that Kafka's answer has."""

from typing import Self

from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Refusal"]


@frozen
class Refusal:
    """Why a request is refused."""

    error: ErrorCode
    message: str | None = None

    @classmethod
    def of(cls, error: ErrorCode) -> Self:
        """Return a refusal with Kafka's own message of the error."""
        assert error is not ErrorCode.NONE, "a refusal says what is wrong"
        return cls(error, error.message)

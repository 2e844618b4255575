"""Why a request about a group is refused, with the words that Kafka's answer has."""

from kraft_wire.frozen import frozen
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Refusal"]


@frozen
class Refusal:
    """Why a request is refused."""

    error: ErrorCode
    message: str | None = None

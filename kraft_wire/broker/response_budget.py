"""Limits answers about objects that are larger than their names.

Some requests may name the same object repeatedly: a few bytes for a group with all its members'
data, or for an offset with its metadata. Kafka answers each repetition. Here an answer that would
take more memory than a connection may hold unsent (ours, `connection.write.buffer.max.bytes`)
closes the connection before it is built, with a log line.

Not here: requests whose answers name each object once, and answers that are parts of files.
"""

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["ResponseBudget"]


class ResponseBudget:
    """The remaining bytes for the answer to one read-only request."""

    __slots__ = ("_field", "_left_bytes", "_version")

    def __init__(self, settings: BrokerSettings, field: str, version: int) -> None:
        """`field` is the part of the answer that grows."""
        self._left_bytes = settings.connection_write_buffer_max_bytes
        self._field = field
        self._version = version

    def take(self, size_bytes: int) -> None:
        """Count a part of the answer. Errors: UnencodableMessage if it does not fit any more."""
        assert size_bytes >= 0, size_bytes
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            reason = "the answer would be larger than connection.write.buffer.max.bytes"
            raise UnencodableMessage(self._field, self._version, reason)

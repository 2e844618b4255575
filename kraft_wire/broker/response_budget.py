"""Room for an answer about things that are larger than their names.

Some requests may ask for the same thing repeatedly: a few bytes for a group with all that its
members say, or for an offset with its metadata. Kafka answers as often as it is asked. Here an
answer that would take more memory than a connection may hold unsent (ours,
`connection.write.buffer.max.bytes`) ends the connection before it is made, with a log line.

Not here: requests whose answers name each thing once, and answers in parts of files.
"""

from kraft_wire.broker.settings import BrokerSettings
from kraft_wire.wire.message import UnencodableMessage

__all__ = ["ResponseBudget"]


class ResponseBudget:
    """What is left for the answer to one request that changes nothing."""

    __slots__ = ("_field", "_left_bytes", "_version")

    def __init__(self, settings: BrokerSettings, field: str, version: int) -> None:
        """`field` is the part of the answer that grows."""
        self._left_bytes = settings.connection_write_buffer_max_bytes
        self._field = field
        self._version = version

    def take(self, size_bytes: int) -> None:
        """Count a part of the answer; UnencodableMessage where it does not fit any more."""
        assert size_bytes >= 0, size_bytes
        self._left_bytes -= size_bytes
        if self._left_bytes < 0:
            reason = "the answer would be larger than connection.write.buffer.max.bytes"
            raise UnencodableMessage(self._field, self._version, reason)

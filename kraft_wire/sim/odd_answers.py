"""Responses between nodes as a peer with a mistake would send them: odd in their shape.

For a while the responses of one node to other nodes lack elements of a list, have them twice, or
carry an error. What they say of leaders, offsets and votes stays true, so that every invariant
holds: a node that gets such a response must refuse it, and ask again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from kraft_wire.wire.frame import frame_prefix
from kraft_wire.wire.generated.add_partitions_to_txn import AddPartitionsToTxnResponse
from kraft_wire.wire.generated.api_versions import ApiVersionsResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import encode_response_header, parse_response_header
from kraft_wire.wire.message import Message
from kraft_wire.wire.structs import Struct

__all__ = ["OddAnswers"]

_SHARE: Final = 0.4
"""Of the responses while it lasts."""
_LISTS_SHARE: Final = 0.7
"""Of those that have both lists and errors."""
_LEFT_ALONE: Final = ApiVersionsResponse.API_KEY
"""What a node once took from it holds for the whole connection, as in Kafka."""
_UNKNOWN_ERROR: Final = 9_999
"""Of a release to come."""
_ODD_ERRORS: Final = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    _UNKNOWN_ERROR,
)
_PASSED_ON: Final = AddPartitionsToTxnResponse.API_KEY
"""A leader gives its error to the producer, as in 4.3.1."""
_PASSED_ON_ERRORS: Final = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
"""Producers retry these."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A field somewhere in a message."""

    owner: Struct
    name: str

    @property
    def value(self) -> object:
        return getattr(self.owner, self.name)


class OddAnswers:
    """Changes responses; equal seeds change them alike."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._until_us: dict[int, int] = {}

    def begin(self, node_id: int, until_us: int) -> None:
        """Let a node's responses to other nodes be odd until a time."""
        self._until_us[node_id] = until_us

    def end(self) -> None:
        """Let no response be odd any more."""
        self._until_us.clear()

    def changed(self, node_id: int, now_us: int, data: bytes, api_key: int, version: int) -> bytes:
        """Return a frame with its length, mostly as it is, as a node sends it to another one."""
        if now_us >= self._until_us.get(node_id, 0) or api_key == _LEFT_ALONE:
            return data
        if self._random.random() >= _SHARE:
            return data
        frame = memoryview(data)[4:]
        correlation_id, at = parse_response_header(frame, api_key, version)
        response, _ = response_class(api_key).decode(frame, version, at)
        errors = _PASSED_ON_ERRORS if api_key == _PASSED_ON else _ODD_ERRORS
        if not self._spoil(response, errors):
            return data
        body = encode_response_header(api_key, version, correlation_id) + response.encode(version)
        return frame_prefix(len(body)) + body

    def _spoil(self, response: Message, errors: Sequence[int]) -> bool:
        """Make a response odd; False for one that has nothing to change."""
        places = list(_places(response))
        lists = [one for one in places if isinstance(one.value, list) and one.value]
        codes = [one for one in places if one.name == "error_code" and one.value == 0]
        if lists and (not codes or self._random.random() < _LISTS_SHARE):
            self._spoil_list(self._random.choice(lists))
        elif codes:
            place = self._random.choice(codes)
            setattr(place.owner, place.name, self._random.choice(errors))
        return bool(lists or codes)

    def _spoil_list(self, place: _Place) -> None:
        elements = [*getattr(place.owner, place.name)]
        at = self._random.randrange(len(elements))
        match self._random.randrange(4):
            case 0:
                elements.clear()
            case 1:
                elements.pop(at)
            case 2:
                elements.insert(self._random.randrange(len(elements) + 1), elements[at])
            case _:
                elements.append(elements[at])
        setattr(place.owner, place.name, elements)


def _places(struct: Struct) -> Iterator[_Place]:
    """Yield every field of a message, in the order of its schema."""
    for name in struct.field_names:
        yield _Place(struct, name)
        value = getattr(struct, name)
        for each in value if isinstance(value, list) else (value,):
            if isinstance(each, Struct):
                yield from _places(each)

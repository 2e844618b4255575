"""The normal form of an exchange: its fields by path, without values that always differ.

Ids, names and places are numbered by their first appearance in a row, so that a response that names
another member or topic than before still differs. Times are reduced to their sign, texts of errors
to their presence, and lists whose order means nothing are keyed or sorted. `normal_form.json` lists
the fields of each kind. Lists of the whole cluster (`listed`) are reduced to the row's own
elements.
"""

import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any, Final

from kraft_wire.conformance.subject import name_mark
from kraft_wire.conformance.verdict import Exchange
from kraft_wire.wire.frame import FRAME_PREFIX_BYTES
from kraft_wire.wire.generated.registry import request_class, response_class
from kraft_wire.wire.header import parse_request_header, parse_response_header
from kraft_wire.wire.message import MalformedMessage
from kraft_wire.wire.structs import Struct

__all__ = ["RULES", "Fields", "NormalForm"]

_RUN: Final = re.compile(r"conform-[0-9a-f]{8}-[0-9a-f]{6}")
_RUN_IN_BYTES: Final = re.compile(_RUN.pattern.encode())
_ALIKE_EVERYWHERE: Final = (-1, 0, None, "", b"", bytes(16))

_RECORDS: Final = ".records"
"""In a request they hold producer ids, which differ."""

_SIZE, _CRC, _TIMES, _PRODUCER_ID = range(8, 12), range(17, 21), range(27, 43), range(43, 51)
_ATTRIBUTES_AT: Final = 22
"""Places in a record batch."""
_CONTROL_BIT: Final = 0x20
_PRODUCER: Final = "producer"
"""The kind of producer ids. The first id of a cluster is 0, which in responses also means none."""
_PRODUCER_ID_FIELD: Final = "producer_id"
_NO_ID: Final = (1 << 64) - 1

Fields = dict[str, object]


def _read_rules() -> dict[str, Any]:
    text = files("kraft_wire.conformance").joinpath("normal_form.json").read_text("utf-8")
    rules: dict[str, Any] = json.loads(text)
    return rules


RULES: Final = _read_rules()
_CLOCK: Final = frozenset(RULES["clock"])
_CLOCK_MS_MIN: Final = 1_750_000_000_000
"""Any broker's clock shows a later time; cases give their records earlier ones."""
_KINDS: Final = {field: kind for kind, fields in RULES["numbered"].items() for field in fields}


def _of_case(rule: str, case: str) -> set[str]:
    """Return the fields that a rule names for a case; its keys are patterns of names."""
    return {
        field
        for pattern, fields in RULES[rule].items()
        if fnmatchcase(case, pattern)
        for field in fields
    }


def _orders_of_case(case: str) -> dict[str, str]:
    """Return the lists whose order means nothing in a case, and the field that sorts each."""
    return {
        field: order
        for pattern, orders in RULES["sorted_by_case"].items()
        if fnmatchcase(case, pattern)
        for field, order in orders.items()
    }


class NormalForm:
    """Normalizes the exchanges of one row, in their order.

    `own` has the id and the place of the broker that answers, by kind: `node`, `host`, `port`. They
    are named instead of numbered, so that clusters of other sizes look alike.
    """

    def __init__(self, case: str, version: int, own: Mapping[str, object] | None = None) -> None:
        self._own = own or {}
        self._mark = name_mark(f"{case}/{version}")
        self._asked = b""
        self._seen: dict[str, dict[object, int]] = {}
        """By kind: the ids that were seen, and their numbers."""
        self._sign = {*RULES["sign"], *_of_case("sign_by_case", case)}
        self._order = {**RULES["sorted"], **_orders_of_case(case)}
        self._ignored = {"unknown_tagged_fields", *_of_case("ignored_by_case", case)}

    def of(self, exchange: Exchange) -> Fields:
        """Return the fields of request and response; paths of the request begin with `request.`.

        An undecodable message is one field with the reason.
        """
        self._asked = exchange.request
        found = {
            f"request.{path}": value
            for path, value in self._request(exchange)
            if not path.endswith(_RECORDS)
        }
        found.update(self._response(exchange))
        return found

    def _request(self, exchange: Exchange) -> Iterator[tuple[str, object]]:
        frame = exchange.request[FRAME_PREFIX_BYTES:]
        try:
            _, at = parse_request_header(frame)
            message, _ = request_class(exchange.api_key).decode(frame, exchange.version, at)
        except (MalformedMessage, KeyError):
            yield "(malformed)", True
            return
        for path, value in self._fields(message, ""):
            is_first_id = value == 0 and path.rpartition(".")[2] == _PRODUCER_ID_FIELD
            yield path, self._numbered(_PRODUCER, value) if is_first_id else value

    def _response(self, exchange: Exchange) -> Iterator[tuple[str, object]]:
        if exchange.response is None:
            yield "(no response)", True
            return
        frame = exchange.response[FRAME_PREFIX_BYTES:]
        try:
            _, at = parse_response_header(frame, exchange.api_key, exchange.version)
            message, _ = response_class(exchange.api_key).decode(frame, exchange.version, at)
        except (MalformedMessage, KeyError) as error:
            yield "(malformed)", str(error)
        else:
            yield from self._fields(message, "")

    def _fields(self, struct: Struct, prefix: str) -> Iterator[tuple[str, object]]:
        for name in struct.field_names:
            value = getattr(struct, name)
            if name in self._ignored:
                continue
            if isinstance(value, Struct):
                yield from self._fields(value, f"{prefix}{name}.")
            elif isinstance(value, list):
                yield from self._list(self._own_of(struct, name, value), name, prefix + name)
            else:
                yield prefix + name, self._value(name, value)

    def _list(self, values: list[object], name: str, path: str) -> Iterator[tuple[str, object]]:
        key, order = RULES["keyed"].get(name), self._order.get(name)
        if order is not None:
            values = sorted(values, key=lambda each: self._place(each, order))
        if key is None or not all(isinstance(each, Struct) for each in values):
            yield f"{path}.length", len(values)
        for index, each in enumerate(values):
            if not isinstance(each, Struct):
                yield f"{path}[{index}]", self._value(name, each)
                continue
            label = index if key is None else self._value(key, getattr(each, key))
            yield f"{path}[{label}]", "(an element)"
            yield from self._fields(each, f"{path}[{label}].")

    def _place(self, element: object, order: str) -> tuple[str, ...]:
        """Return the sort key of an element; equal elements keep their order."""
        if not isinstance(element, Struct):
            return (str(element),)
        value = getattr(element, order, None)
        if isinstance(value, int):
            return (f"{value:+021d}",)
        return (str(self._value(order, value)),)

    def _own_of(self, struct: Struct, field: str, values: list[Any]) -> list[Any]:
        """Return the elements of a list of the whole cluster that the row made or requested."""
        name = RULES["listed"].get(f"{type(struct).__name__}.{field}")
        if name is None:
            return values
        return [each for each in values if self._is_own(getattr(each, name))]

    def _is_own(self, name: str | None) -> bool:
        return not name or self._mark in name or name.encode() in self._asked

    def _value(self, name: str, value: object) -> object:
        if isinstance(value, memoryview | bytearray):
            value = bytes(value)
        if name == "records" and isinstance(value, bytes):
            value = _without_producer_ids(value)
        if name in _CLOCK and isinstance(value, int) and value >= _CLOCK_MS_MIN:
            return "(a time of the broker)"
        if name in self._sign and isinstance(value, int | float):
            return (value > 0) - (value < 0)
        if name in RULES["presence"] or (name in self._sign and value is not None):
            return "(present)" if value else value
        kind = _KINDS.get(name)
        if kind is not None and value != -1 and self._own.get(kind) == value:
            return f"this {kind}"
        if kind is not None and value not in _ALIKE_EVERYWHERE:
            return self._numbered(kind, value)
        if isinstance(value, str):
            return _RUN.sub("conform", value)
        return _RUN_IN_BYTES.sub(b"conform", value) if isinstance(value, bytes) else value

    def _numbered(self, kind: str, value: object) -> str:
        seen = self._seen.setdefault(kind, {})
        return f"{kind} {seen.setdefault(value, len(seen) + 1)}"


def _without_producer_ids(data: bytes) -> bytes:
    """Return batches without CRC and values of brokers (producer ids, times of markers)."""
    found, at = bytearray(data), 0
    while at + _PRODUCER_ID.stop <= len(data):
        if int.from_bytes(data[at + _PRODUCER_ID.start : at + _PRODUCER_ID.stop], "big") != _NO_ID:
            is_control = data[at + _ATTRIBUTES_AT] & _CONTROL_BIT
            for each in (_CRC, _TIMES, _PRODUCER_ID) if is_control else (_CRC, _PRODUCER_ID):
                found[at + each.start : at + each.stop] = bytes(len(each))
        size = int.from_bytes(data[at + _SIZE.start : at + _SIZE.stop], "big", signed=True)
        at += _SIZE.stop + max(size, 0)
    return bytes(found)

"""A message as JSON and back, exactly as Kafka's generated JsonConverter classes do it.

It uses the field tables for every message and version. One difference from Kafka is intended:
records fields are base64 of their bytes, where Kafka's own converter writes an empty text and so
loses them.

The JSON of frames around messages is in `frames_json`, that of record batches in `records_json`.
"""

import math
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from typing import Final, cast

from kraft_wire.model import FileSlice, Uuid, uuid_from_text, uuid_to_text
from kraft_wire.wire.defaults import default_value, is_default
from kraft_wire.wire.generated.registry import message_table, struct_class
from kraft_wire.wire.message import Message, Struct, UnencodableMessage
from kraft_wire.wire.schema import FieldTable, MessageTable, StructTable, includes

__all__ = [
    "InvalidJson",
    "Json",
    "base64_of",
    "bytes_of",
    "expect_object",
    "integer_of",
    "message_from_json",
    "message_to_json",
]

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_RANGES: Final[dict[str, tuple[int, int]]] = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}

_SPELLED: Final = frozenset({"uuid", "bytes", "records", "float64"})
"""Kinds whose values have another form in JSON than in a message."""

_UUID_TEXT: Final = re.compile("[A-Za-z0-9_-]*={0,2}")


class InvalidJson(ValueError):
    """JSON that is not a message; the text begins with the path of the field."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


def message_to_json(message: Message, version: int) -> dict[str, Json]:
    """Return the JSON object of `message` in `version`.

    Raises UnencodableMessage for a value that the version has no field for.
    """
    return _struct_to_json(message, message_table(message.NAME).struct, version)


def message_from_json(table: MessageTable, json: Json, version: int) -> Message:
    """Return the message of `json` in `version`; unknown keys are ignored.

    A key of a field that the version lacks is read: the encoder decides whether the value may be
    dropped. Raises InvalidJson.
    """
    if not table.min_version <= version <= table.max_version:
        known = f"{table.min_version} to {table.max_version}"
        raise InvalidJson(table.name, f"version {version} is outside {known}")
    return cast(Message, _Reader(table, version).struct(table.struct, json, ""))


def _struct_to_json(value: object, table: StructTable, version: int) -> dict[str, Json]:
    json: dict[str, Json] = {}
    for field in table.fields:
        inner = getattr(value, field.name)
        first, last = field.versions
        if not first <= version <= last:  # `includes` would cost a call for each field
            if not field.ignorable and not is_default(field, inner):
                raise UnencodableMessage(field.name, version, "the version lacks this field")
        elif field.tag < 0 or not includes(field.tagged, version) or not is_default(field, inner):
            json[field.json_name] = _value_to_json(inner, field, version)
    return json


def _value_to_json(value: object, field: FieldTable, version: int) -> Json:
    if value is None:
        return None
    if field.struct is None and field.kind not in _SPELLED:
        return cast("Json", list(cast("list[Json]", value)) if field.is_array else value)
    if not field.is_array:
        return _element_to_json(value, field, version)
    return [_element_to_json(element, field, version) for element in cast("list[object]", value)]


def _element_to_json(value: object, field: FieldTable, version: int) -> Json:
    if field.struct is not None:
        return _struct_to_json(value, field.struct, version)
    if field.kind == "uuid":
        return uuid_to_text(Uuid(cast(bytes, value)))
    if field.kind in ("bytes", "records"):
        content = value.read() if isinstance(value, FileSlice) else cast(bytes, value)
        return base64_of(content)
    assert field.kind == "float64", field
    number = cast(float, value)
    return number if math.isfinite(number) else _not_finite(number)


def _not_finite(value: float) -> str:
    """Return Jackson's text for values without a JSON number."""
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


class _Reader:
    """One pass over the JSON of one message."""

    def __init__(self, table: MessageTable, version: int) -> None:
        self.table = table
        self.version = version

    def struct(self, table: StructTable, json: Json, path: str) -> Struct:
        if not includes(table.versions, self.version):
            raise InvalidJson(path, f"{table.name} does not exist in version {self.version}")
        members = expect_object(json, path or table.name)
        values: dict[str, object] = {}
        for field in table.fields:
            if field.json_name in members:
                inner = f"{path}.{field.json_name}" if path else field.json_name
                values[field.name] = self.field(field, members[field.json_name], inner)
            elif includes(field.versions, self.version) and not includes(
                field.tagged, self.version
            ):
                raise InvalidJson(
                    path or table.name,
                    f"field {field.json_name!r} is mandatory in version {self.version}",
                )
            else:
                values[field.name] = default_value(field, self.table)
        return struct_class(self.table, table)(**values)

    def field(self, field: FieldTable, json: Json, path: str) -> object:
        if json is None:
            if field.nullable[0] > field.nullable[1]:
                raise InvalidJson(path, "null in a field that is never null")
            return None
        if not field.is_array:
            return self.element(field, json, path)
        if not isinstance(json, list):
            raise InvalidJson(path, f"expected an array, not {_kind(json)}")
        return [
            self.element(field, element, f"{path}[{index}]") for index, element in enumerate(json)
        ]

    def element(self, field: FieldTable, json: Json, path: str) -> object:
        if field.struct is not None:
            return self.struct(field.struct, json, path)
        if field.kind in _RANGES:
            return integer_of(json, field.kind, path)
        if field.kind in ("bytes", "records"):
            return bytes_of(json, path)
        return _SCALARS[field.kind](json, path)


def expect_object(json: Json, path: str) -> dict[str, Json]:
    """Return `json` if it is an object; else InvalidJson."""
    if not isinstance(json, dict):
        raise InvalidJson(path, f"expected an object, not {_kind(json)}")
    return json


def integer_of(json: Json, kind: str, path: str) -> int:
    """Return an integer in the range of `kind`; else InvalidJson."""
    if not isinstance(json, int) or isinstance(json, bool):
        raise InvalidJson(path, f"expected an integer, not {_kind(json)}")
    low, high = _RANGES[kind]
    if not low <= json <= high:
        raise InvalidJson(path, f"{json} is outside the range of {kind}")
    return json


def bytes_of(json: Json, path: str) -> bytes:
    """Return the bytes of a base64 text; else InvalidJson."""
    if not isinstance(json, str):
        raise InvalidJson(path, f"expected base64, not {_kind(json)}")
    try:
        return b64decode(json, validate=True)
    except (Base64Error, ValueError) as error:
        raise InvalidJson(path, f"not base64: {error}") from error


def base64_of(content: bytes | bytearray | memoryview) -> str:
    """Return standard base64 with padding."""
    return b64encode(content).decode("ascii")


def _text(json: Json, path: str) -> str:
    if not isinstance(json, str):
        raise InvalidJson(path, f"expected a string, not {_kind(json)}")
    return json


def _boolean(json: Json, path: str) -> bool:
    if not isinstance(json, bool):
        raise InvalidJson(path, f"expected true or false, not {_kind(json)}")
    return json


def _real(json: Json, path: str) -> float:
    if not isinstance(json, float):
        raise InvalidJson(path, f"expected a number with a fraction, not {_kind(json)}")
    return json


def _uuid(json: Json, path: str) -> Uuid:
    text = _text(json, path)
    try:
        if not _UUID_TEXT.fullmatch(text):
            raise ValueError(f"{text[:30]!r} is not URL-safe base64")
        return uuid_from_text(text)
    except ValueError as error:
        raise InvalidJson(path, str(error)) from error


_SCALARS: Final = {"bool": _boolean, "float64": _real, "string": _text, "uuid": _uuid}


def _kind(json: Json) -> str:
    """Name the JSON type for an error."""
    return "null" if json is None else _KIND_NAMES[type(json)]


_KIND_NAMES: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
}

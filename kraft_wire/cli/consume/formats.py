r"""How a record is printed: a template as in kcat, or the properties of kafka-console-consumer.

Template: %t topic, %p partition, %o offset, %k key, %s or %v value, %K and %S their sizes (-1 for
null), %T timestamp in ms, %h headers as name=value,... and %% a percent sign; \n, \t, \r and \\.
Null is printed as nothing, or as the text that the caller names.
"""

import re
from collections.abc import Callable
from typing import Final

from kraft_wire.cli.output import WrongInput
from kraft_wire.wire.records.record import Record

__all__ = ["PROPERTIES", "Formatter", "property_formatter", "template_formatter"]

Formatter = Callable[[str, int, Record], bytes]
"""Takes topic, partition and record."""

PROPERTIES: Final = {
    "print.timestamp": "false",
    "print.partition": "false",
    "print.offset": "false",
    "print.headers": "false",
    "print.key": "false",
    "print.value": "true",
    "key.separator": "\t",
    "line.separator": "\n",
    "headers.separator": ",",
    "null.literal": "null",
}
"""The properties of kafka-console-consumer, with its defaults."""

_ESCAPES: Final = {r"\n": b"\n", r"\t": b"\t", r"\r": b"\r", "\\\\": b"\\", "%%": b"%"}
_TOKEN: Final = re.compile(r"%.|\\[ntr\\]", re.DOTALL)
_FIELDS: Final = "tpokvsKSTh"


def template_formatter(template: str, null: bytes) -> Formatter:
    """Return a formatter for a template. Errors: WrongInput for an unknown field."""
    parts: list[bytes | str] = []
    position = 0
    for found in _TOKEN.finditer(template):
        parts.append(template[position : found.start()].encode())
        position = found.end()
        token = found[0]
        if token not in _ESCAPES and token[1] not in _FIELDS:
            raise WrongInput(f'unknown field "{token}" in --format; known: %{" %".join(_FIELDS)}')
        parts.append(_ESCAPES.get(token, token[1]))
    parts.append(template[position:].encode())

    def format_record(topic: str, partition: int, record: Record) -> bytes:
        return b"".join(
            part if isinstance(part, bytes) else _field(part, topic, partition, record, null)
            for part in parts
        )

    return format_record


def property_formatter(properties: dict[str, str]) -> Formatter:
    """Return a formatter for properties; without any it prints the value."""
    separator = properties["key.separator"].encode()
    line_end = properties["line.separator"].encode()
    null = properties["null.literal"].encode()
    headers_separator = properties["headers.separator"].encode()
    shown = {name for name, value in properties.items() if value.lower() == "true"}

    def format_record(topic: str, partition: int, record: Record) -> bytes:
        parts = []
        if "print.timestamp" in shown:
            parts.append(b"CreateTime:%d" % record.timestamp)
        if "print.partition" in shown:
            parts.append(b"Partition:%d" % partition)
        if "print.offset" in shown:
            parts.append(b"Offset:%d" % record.offset)
        if "print.headers" in shown:
            listed = [
                name.encode() + b":" + (null if value is None else value)
                for name, value in record.headers
            ]
            parts.append(headers_separator.join(listed) or b"NO_HEADERS")
        if "print.key" in shown:
            parts.append(null if record.key is None else record.key)
        if "print.value" in shown:
            parts.append(null if record.value is None else record.value)
        return separator.join(parts) + line_end

    return format_record


def _field(name: str, topic: str, partition: int, record: Record, null: bytes) -> bytes:
    """Return one field of a template."""
    match name:
        case "t":
            return topic.encode()
        case "p":
            return b"%d" % partition
        case "o":
            return b"%d" % record.offset
        case "T":
            return b"%d" % record.timestamp
        case "h":
            listed = [
                name.encode() + b"=" + (b"NULL" if value is None else value)
                for name, value in record.headers
            ]
            return b",".join(listed)
        case "k" | "K":
            data = record.key
        case _:
            data = record.value
    if name in "KS":
        return b"%d" % (-1 if data is None else len(data))
    return null if data is None else data

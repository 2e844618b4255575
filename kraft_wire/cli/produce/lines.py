"""Lines of standard input as records, as kafka-console-producer reads them.

A line is a value, or headers, key and value with separators between. Lines arrive in chunks, so
that lines of a slow input are sent while it pauses.
"""

import os
import select
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kraft_wire.cli.output import WrongInput
from kraft_wire.cli.record_json import InputRecord
from kraft_wire.wire.records.record import Header

__all__ = ["PROPERTIES", "LineForm", "line_form", "lines_of", "record_of_line"]

PROPERTIES: Final = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
}
"""The properties of kafka-console-producer, with its defaults; an empty null.marker means none."""
_CHUNK_BYTES: Final = 1 << 16
_PAUSE_SECONDS: Final = 0.005


@dataclass(frozen=True, slots=True)
class LineForm:
    """How a line is split; None for a part that it does not have."""

    key_separator: bytes | None = None
    headers_delimiter: bytes | None = None
    headers_separator: bytes = b","
    headers_key_separator: bytes = b":"
    null_marker: bytes | None = None


def line_form(properties: dict[str, str]) -> LineForm:
    """Return the form that properties describe. Errors: WrongInput."""
    encoded = {key: value.encode() for key, value in properties.items()}
    if not all(value for key, value in encoded.items() if key != "null.marker"):
        raise WrongInput("a separator must not be empty")
    has_key = properties["parse.key"].lower() == "true"
    has_headers = properties["parse.headers"].lower() == "true"
    return LineForm(
        key_separator=encoded["key.separator"] if has_key else None,
        headers_delimiter=encoded["headers.delimiter"] if has_headers else None,
        headers_separator=encoded["headers.separator"],
        headers_key_separator=encoded["headers.key.separator"],
        null_marker=encoded["null.marker"] or None,
    )


def lines_of(descriptor: int) -> Iterator[tuple[list[bytes], bool]]:
    """Yield whole lines as they arrive, and whether the input paused after them."""
    rest = b""
    while data := os.read(descriptor, _CHUNK_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        has_more, _, _ = select.select([descriptor], [], [], _PAUSE_SECONDS)
        yield lines, not has_more
    if rest:
        yield [rest], True


def record_of_line(line: bytes, form: LineForm) -> InputRecord:
    """Split a line into headers, key and value. Errors: WrongInput, one clause."""
    headers: tuple[Header, ...] = ()
    key = None
    if form.headers_delimiter is not None:
        text, found, line = line.partition(form.headers_delimiter)
        if not found:
            raise WrongInput(
                f"no headers delimiter {form.headers_delimiter.decode()!r} in the line"
            )
        headers = _headers(text, form)
    if form.key_separator is not None:
        key, found, line = line.partition(form.key_separator)
        if not found:
            raise WrongInput(f"no key separator {form.key_separator.decode()!r} in the line")
    return InputRecord(_or_null(key, form), _or_null(line, form), headers)


def _headers(text: bytes, form: LineForm) -> tuple[Header, ...]:
    if text == form.null_marker or not text:
        return ()
    headers = []
    for each in text.split(form.headers_separator):
        name, found, value = each.partition(form.headers_key_separator)
        if not found:
            separator, part = form.headers_key_separator.decode(), each.decode(errors="replace")
            raise WrongInput(f"no header key separator {separator!r} in {part!r}")
        headers.append((name.decode(errors="replace"), _or_null(value, form)))
    return tuple(headers)


def _or_null(data: bytes | None, form: LineForm) -> bytes | None:
    return None if data == form.null_marker else data

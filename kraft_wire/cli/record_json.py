"""One record as a JSON object, as `consume --json` prints it and `produce --json` reads it.

Keys, values and header values are strings if they are UTF-8, else `{"base64": "..."}`; null stays
null. Times are in milliseconds.
"""

import base64
import json
from typing import Final, NamedTuple

from kraft_wire.cli.output import WrongInput
from kraft_wire.foreign_text import json_value
from kraft_wire.wire.records.record import Header, Record

__all__ = ["NUMBER_MAX", "InputRecord", "record_json", "record_of_json"]

NUMBER_MAX: Final = (1 << 63) - 1
"""Of a timestamp in ms."""


class InputRecord(NamedTuple):
    """A record to write."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    partition: int | None = None
    """None lets the partitioner choose."""
    timestamp_ms: int | None = None
    """None means now."""


def record_json(topic: str, partition: int, record: Record) -> dict[str, object]:
    """Return a record that was read."""
    return {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "key": _data_json(record.key),
        "value": _data_json(record.value),
        "headers": [{"name": name, "value": _data_json(data)} for name, data in record.headers],
    }


def record_of_json(line: bytes) -> InputRecord:
    """Read an object with any of key, value, headers, partition and timestamp_ms.

    Errors: WrongInput, one clause.
    """
    try:
        found = json_value(line)
        if not isinstance(found, dict):
            raise WrongInput("not a JSON object")
        headers = tuple(
            (str(each["name"]), _data(each.get("value"))) for each in found.get("headers") or ()
        )
        return InputRecord(
            key=_data(found.get("key")),
            value=_data(found.get("value")),
            headers=headers,
            partition=_number(found, "partition"),
            timestamp_ms=_number(found, "timestamp_ms"),
        )
    except ValueError as error:  # also of numbers with very many digits
        raise WrongInput(f"not JSON: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise WrongInput('headers must be a list of {"name": ..., "value": ...}') from error


def _number(found: dict[str, object], name: str) -> int | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= NUMBER_MAX:
        raise WrongInput(f"{name} must be a number from 0 to {NUMBER_MAX}, not {json.dumps(value)}")
    return value


def _data_json(data: bytes | None) -> object:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def _data(value: object) -> bytes | None:
    """Read a string, null, `{"base64": ...}`, or any other JSON value as its text."""
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    if isinstance(value, dict) and set(value) == {"base64"}:
        try:
            return base64.b64decode(str(value["base64"]), validate=True)
        except ValueError as error:  # also of characters beyond ASCII
            raise WrongInput(f"base64: {error}") from error
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="surrogatepass")

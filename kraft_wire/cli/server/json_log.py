"""`--log-format json`: each event of the log as one JSON object a line, with its time."""

import json
from collections.abc import Mapping

from kraft_wire.node.event_log import Line
from kraft_wire.server.clock import wall_ms

__all__ = ["json_line"]


def json_line(name: str, fields: Mapping[str, object]) -> str:
    """Return one event; numbers, booleans and null stay what they are, all else is text."""
    values = {key: _value(value) for key, value in fields.items()}
    return json.dumps({"time_ms": wall_ms(), "event": name, **values}, ensure_ascii=False)


def _value(value: object) -> object:
    if isinstance(value, Line):
        return value.text
    return value if value is None or isinstance(value, bool | int | float) else str(value)

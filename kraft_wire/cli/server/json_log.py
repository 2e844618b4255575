"""`--log-format json`: each event of the log as one JSON object a line."""

import json

from kraft_wire.node.event_log import Entry, Line, time_text

__all__ = ["json_line"]


def json_line(entry: Entry) -> str:
    """Return one event; numbers, booleans and null keep their types, other values become text."""
    values = {key: _value(value) for key, value in entry.fields.items()}
    wall_ms = entry.wall_ms
    assert wall_ms is not None, "the log of a process has a clock"
    head = {
        "time": time_text(wall_ms),
        "time_ms": wall_ms,
        "level": entry.level,
        "component": entry.component,
        "event": entry.name,
    }
    return json.dumps({**head, **values}, ensure_ascii=False)


def _value(value: object) -> object:
    if isinstance(value, Line):
        return value.text
    return value if value is None or isinstance(value, bool | int | float) else str(value)

"""The log: one line per event, with time, level, component, name and fields as key=value.

    2026-11-25T22:31:07.412Z WARN network rejected client=127.0.0.1:53114 listener=PLAINTEXT
    principal=- api=Fetch version=18 correlation=7 field=topics byte=23
    reason=array_count_exceeds_remaining action=close

Level and component are those of `events.catalogue`. Refusals are limited per client address and
reason, so that a client cannot fill the disk with them.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from kraft_wire.broker.log_line_limiter import LogLineLimiter
from kraft_wire.node.events.catalogue import EVENTS, LEVELS
from kraft_wire.node.outputs import Peer, Rejection

__all__ = ["Entry", "EventLog", "Line", "time_text"]

_UNKNOWN: Final = -1
"""A number that is not known; a line shows `-`."""


class Line:
    """A text that this program wrote, shown whole and in quotes: a reason, a command to run."""

    def __init__(self, text: object) -> None:
        self.text = str(text)


class Entry(NamedTuple):
    """One event, before it is written."""

    wall_ms: int | None
    """The time of day; None if the log has no clock."""
    level: str
    component: str
    name: str
    fields: Mapping[str, object]


class EventLog:
    """Writes lines and counts refusals."""

    def __init__(
        self, write: Callable[[str], None], wall_ms: Callable[[], int] | None = None
    ) -> None:
        """`write` takes a line with its newline and never fails; `wall_ms` is the time of day."""
        self._write = write
        self._wall_ms = wall_ms
        self.form: Callable[[Entry], str] = _text
        """Makes the line of an event, without a newline; key=value by default."""
        self._level = LEVELS["INFO"]
        self._levels: dict[str, int] = {}
        """Levels of components that have another one."""
        self._rejections_limit = LogLineLimiter(self._suppressed)
        self._limit = LogLineLimiter(self._lines_suppressed)
        self.rejections: dict[str, int] = {}
        """Refused or broken connections by reason."""

    def set_level(self, name: str, component: str | None = None) -> None:
        """Write lines of this level and above: of one component, or of all others.

        `name` is one of `LEVELS`.
        """
        if component is None:
            self._level = LEVELS[name]
        else:
            self._levels[component] = LEVELS[name]

    def may_write(self, name: str) -> bool:
        """Whether an event is written at its own level."""
        return self._has_level(EVENTS[name].level, name)

    def _has_level(self, level: str, name: str) -> bool:
        return LEVELS[level] >= self._levels.get(EVENTS[name].component, self._level)

    def event(self, name: str, **fields: object) -> None:
        """Write the line of an event at its own level."""
        self.event_at(EVENTS[name].level, name, **fields)

    def event_at(self, level: str, name: str, /, **fields: object) -> None:
        """Write the line of an event at another level than its own."""
        if self._has_level(level, name):
            wall_ms = None if self._wall_ms is None else self._wall_ms()
            entry = Entry(wall_ms, level, EVENTS[name].component, name, fields)
            self._write(self.form(entry) + "\n")

    def limited(self, name: str, host: str, now_ms: int, /, **fields: object) -> None:
        """Write a line unless 10 of that event and address have been written in this second."""
        if self._limit.may_write(host, name, now_ms):
            self.event(name, client=host, **fields)

    def tick(self, now_ms: int) -> None:
        """Report the number of omitted lines of the last second."""
        self._limit.tick(now_ms)
        self._rejections_limit.tick(now_ms)

    def rejected(self, peer: Peer, rejection: Rejection, now_ms: int) -> None:
        """Count a refusal; write its line unless its address and reason had 10 this second."""
        self.rejections[rejection.reason] = self.rejections.get(rejection.reason, 0) + 1
        if not self._rejections_limit.may_write(peer.client_host, rejection.reason, now_ms):
            return
        self.event(
            "rejected",
            client=f"{peer.client_host}:{peer.client_port}",
            listener=peer.listener,
            principal="-",
            api=rejection.api,
            version=_known(rejection.version),
            correlation=_known(rejection.correlation_id),
            field=rejection.field,
            byte=_known(rejection.byte),
            reason=rejection.reason,
            **{key: value for key, value in rejection.details},
            client_id=rejection.client_id or peer.client_id or "-",
            action="close",
        )

    def _suppressed(self, host: str, reason: str, count: int) -> None:
        self.event("rejected_suppressed", client=host, reason=reason, count=count)

    def _lines_suppressed(self, host: str, name: str, count: int) -> None:
        self.event("lines_suppressed", client=host, lines=name, count=count)


def _known(number: int) -> object:
    return "-" if number == _UNKNOWN else number


def time_text(wall_ms: int) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds."""
    time = datetime.fromtimestamp(wall_ms // 1000, UTC)
    return f"{time:%Y-%m-%dT%H:%M:%S}.{wall_ms % 1000:03d}Z"


def _text(entry: Entry) -> str:
    time = () if entry.wall_ms is None else (time_text(entry.wall_ms),)
    fields = (f"{key}={_shown(value)}" for key, value in entry.fields.items())
    return " ".join([*time, entry.level, entry.component, entry.name, *fields])


def _shown(value: object) -> str:
    """Return a value without spaces, control characters or excessive length, or in quotes."""
    if isinstance(value, Line):
        text = "".join(c if c.isprintable() else "_" for c in value.text)
        return '"' + text.replace('"', "'") + '"'
    text = str(value)[:200]
    return "".join(c if c.isprintable() and c != " " else "_" for c in text) or "-"

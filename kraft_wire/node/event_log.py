"""Log lines: one per event, key=value; refusals are limited per client address and reason.

The form of a refusal is fixed, so that it can be searched and counted:

    rejected client=127.0.0.1:53114 listener=PLAINTEXT principal=- api=Fetch version=18
    correlation=7 field=topics byte=23 reason=array_count_exceeds_remaining action=close
"""

from collections.abc import Callable, Mapping

from kraft_wire.broker.log_line_limiter import LogLineLimiter
from kraft_wire.node.outputs import Peer, Rejection

__all__ = ["EventLog", "Line"]


class Line:
    """A text of our own, shown whole and in quotes: a reason, a command to run."""

    def __init__(self, text: object) -> None:
        self.text = str(text)


class EventLog:
    """Writes lines and counts what it was told."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """`write` takes a whole line with its end, and fails for nobody."""
        self._write = write
        self.form: Callable[[str, Mapping[str, object]], str] = _text
        """Makes the line of an event, without its end; key=value by default."""
        self._limit = LogLineLimiter(self._suppressed)
        self.rejections: dict[str, int] = {}
        """Refused or broken connections by reason."""

    def event(self, name: str, **fields: object) -> None:
        """Write one line."""
        self._write(self.form(name, fields) + "\n")

    def rejected(self, peer: Peer, rejection: Rejection, now_ms: int) -> None:
        """Count a refusal, and write its line unless its like from there filled this second."""
        self.rejections[rejection.reason] = self.rejections.get(rejection.reason, 0) + 1
        if not self._limit.may_write(peer.client_host, rejection.reason, now_ms):
            return
        self.event(
            "rejected",
            client=f"{peer.client_host}:{peer.client_port}",
            listener=peer.listener,
            principal="-",
            api=rejection.api,
            version=rejection.version,
            correlation=rejection.correlation_id,
            field=rejection.field,
            byte=rejection.byte,
            reason=rejection.reason,
            **{key: value for key, value in rejection.details},
            client_id=rejection.client_id or peer.client_id or "-",
            action="close",
        )

    def _suppressed(self, host: str, reason: str, count: int) -> None:
        self.event("rejected_suppressed", client=host, reason=reason, count=count)


def _text(name: str, fields: Mapping[str, object]) -> str:
    return " ".join([name, *(f"{key}={_shown(value)}" for key, value in fields.items())])


def _shown(value: object) -> str:
    """Return a value without spaces, control characters or excessive length, or in quotes."""
    if isinstance(value, Line):
        text = "".join(c if c.isprintable() else "_" for c in value.text)
        return '"' + text.replace('"', "'") + '"'
    text = str(value)[:200]
    return "".join(c if c.isprintable() and c != " " else "_" for c in text) or "-"

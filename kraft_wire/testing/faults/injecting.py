"""The verbs of fault injection, for a cluster or a proxy; each returns the handle of its rule."""

from typing import TypedDict, Unpack

from kraft_wire.testing.faults.rule import Effect, Fault, Rule, Selector, When
from kraft_wire.testing.faults.rules import FaultRules
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["Faults", "Selection", "error_code_of"]


class Selection(TypedDict, total=False):
    """Which requests a rule is about, and when it fires; all optional."""

    api: str | None
    versions: tuple[int, int]
    client_id: str | None
    topic: str | None
    partition: int | None
    node: int | None
    when: When | None


def error_code_of(error: str | int) -> int:
    """Return the code of an error's name or number. Errors: ValueError."""
    if isinstance(error, int):
        return error
    try:
        return int(ErrorCode[error])
    except KeyError:
        raise ValueError(f"unknown error {error!r}") from None


class Faults:
    """Adds rules; see docs/FAULTS.md."""

    def __init__(self, rules: FaultRules) -> None:
        self.rules = rules

    def inject_error(self, error: str | int, **selection: Unpack[Selection]) -> Rule:
        """Answer requests with an error, without handling them."""
        return self._add(Fault(Effect.INJECT_ERROR, error_code=error_code_of(error)), selection)

    def disconnect(self, *, after_handling: bool = False, **selection: Unpack[Selection]) -> Rule:
        """Close the connection, before a request is handled or in place of its response."""
        return self._add(Fault(Effect.DISCONNECT, after_handling=after_handling), selection)

    def delay(
        self, seconds: float, *, after_handling: bool = False, **selection: Unpack[Selection]
    ) -> Rule:
        """Hold a request, or its response, for some time."""
        fault = Fault(Effect.DELAY, seconds=seconds, after_handling=after_handling)
        return self._add(fault, selection)

    def blackhole(self, *, after_handling: bool = False, **selection: Unpack[Selection]) -> Rule:
        """Drop a request, or its response; the connection stays open and silent."""
        return self._add(Fault(Effect.BLACKHOLE, after_handling=after_handling), selection)

    def throttle(self, seconds: float, **selection: Unpack[Selection]) -> Rule:
        """Report a throttle time in responses, for which clients pause."""
        return self._add(Fault(Effect.THROTTLE, seconds=seconds), selection)

    def truncate_response(self, size_bytes: int, **selection: Unpack[Selection]) -> Rule:
        """Send the first bytes of a response, then close the connection."""
        return self._add(Fault(Effect.TRUNCATE_RESPONSE, size_bytes=size_bytes), selection)

    def corrupt_records(self, **selection: Unpack[Selection]) -> Rule:
        """Flip a byte of the records that are fetched, or produced with `api="Produce"`."""
        selection.setdefault("api", "Fetch")
        return self._add(Fault(Effect.CORRUPT_RECORDS), selection)

    def clear(self) -> None:
        """Remove every rule."""
        self.rules.clear()

    def _add(self, fault: Fault, selection: Selection) -> Rule:
        chosen = dict(selection)
        when = chosen.pop("when", None)
        return self.rules.add(fault, Selector(**chosen), when)  # type: ignore[arg-type]  # typed by its callers

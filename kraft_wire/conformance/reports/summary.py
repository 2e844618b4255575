"""The summary of every report: outcomes counted by API."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kraft_wire.conformance.verdict import Outcome, Verdict

__all__ = ["ApiSummary", "rerun_line", "summarized"]


@dataclass(frozen=True, slots=True)
class ApiSummary:
    """The outcomes of one module of cases."""

    name: str
    counts: Counter[Verdict]
    seconds: float

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return self.counts.total()


def summarized(outcomes: Iterable[Outcome]) -> list[ApiSummary]:
    """Return a summary of each API, in the order of their names."""
    by_api: dict[str, list[Outcome]] = {}
    for each in outcomes:
        by_api.setdefault(each.name.partition(".")[0], []).append(each)
    return [_summary(name, by_api[name]) for name in sorted(by_api)]


def _summary(name: str, outcomes: Sequence[Outcome]) -> ApiSummary:
    counts = Counter(each.verdict for each in outcomes)
    return ApiSummary(name, counts, sum(each.seconds for each in outcomes))


def rerun_line(outcome: Outcome, address: str) -> str:
    """Return the command that judges this one row again."""
    return f"kraft-wire conform --bootstrap-server {address} --only {outcome.row}"

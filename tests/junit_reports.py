"""What pytest's report says of each test: its time, its outcome, and why it failed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

OUTCOMES = {"failure": "failed", "skipped": "skipped", "error": "error"}
"""By the element in pytest's report."""

FAILURES = frozenset({"failed", "error"})

REASON_MAX = 300
"""Characters of a reason."""


@dataclass(frozen=True, slots=True)
class Timed:
    """One test as pytest's report has it."""

    name: str
    seconds: float
    outcome: str
    reason: str = ""
    """Why it failed: the exception and its first line."""

    @property
    def file(self) -> str:
        """Where the test is, from the checkout."""
        return self.name.partition("::")[0]


def read_report(report: Path) -> list[Timed]:
    """Read pytest's report; none where the phase ran no test."""
    if not report.exists():
        return []
    return [_timed(case) for case in ElementTree.parse(report).iter("testcase")]


def _timed(case: ElementTree.Element) -> Timed:
    ended = next((each for each in case if each.tag in OUTCOMES), None)
    message = "" if ended is None else ended.get("message", "")
    return Timed(
        name=f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}",
        seconds=float(case.get("time", 0)),
        outcome="passed" if ended is None else OUTCOMES[ended.tag],
        reason=message.strip().partition("\n")[0][:REASON_MAX],
    )


def seconds_by_file(tests: Sequence[Timed]) -> dict[str, float]:
    """Sum up the time of each file's tests, the longest file first."""
    found: Counter[str] = Counter()
    for test in tests:
        found[test.file] += test.seconds
    return dict(found.most_common())

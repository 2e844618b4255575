"""The report for a terminal: a table by API, then every row that did not pass."""

from collections.abc import Iterator, Sequence

from kraft_wire.conformance.dump import exchange_lines
from kraft_wire.conformance.reports.summary import rerun_line, summarized
from kraft_wire.conformance.verdict import Outcome, Verdict

__all__ = ["text_report"]

_COLUMNS = ("API", "rows", "passed", "failed", "differs", "not supported", "error", "seconds")


def text_report(outcomes: Sequence[Outcome], address: str) -> Iterator[str]:
    """Yield the lines of the report."""
    lost: set[str] = set()
    for each in outcomes:
        if each.verdict is Verdict.ERROR and not each.exchanges:
            if each.seen in lost:
                continue  # The broker is gone: one of these rows is like the other.
            lost.add(each.seen)
        if each.verdict.is_finding:
            yield from _detail(each, address)
    yield from _reasons(outcomes)
    yield from _table(outcomes)


def _detail(outcome: Outcome, address: str) -> Iterator[str]:
    yield f"{outcome.row}: {outcome.verdict}"
    yield f"  expected  {outcome.expected}"
    yield f"  got       {outcome.seen}{f'  at {outcome.path}' if outcome.path else ''}"
    for exchange in outcome.exchanges[-1:]:
        yield from (f"    {line}" for line in exchange_lines(exchange, outcome.path))
    yield f"  run again {rerun_line(outcome, address)}"
    yield ""


def _reasons(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield each reason for rows without an exchange once, with its number of rows."""
    reasons: dict[tuple[Verdict, str], int] = {}
    for each in outcomes:
        is_lost = each.verdict is Verdict.ERROR and not each.exchanges
        if is_lost or each.verdict is Verdict.NOT_SUPPORTED:
            key = each.verdict, each.seen
            reasons[key] = reasons.get(key, 0) + 1
    for (verdict, reason), rows in reasons.items():
        yield f"{verdict}, {rows} row{'' if rows == 1 else 's'}: {reason}"
    if reasons:
        yield ""


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    rows = [
        (
            each.name,
            str(each.rows),
            *(
                str(each.counts[verdict])
                for verdict in (
                    Verdict.PASSED,
                    Verdict.FAILED,
                    Verdict.DIFFERS,
                    Verdict.NOT_SUPPORTED,
                    Verdict.ERROR,
                )
            ),
            f"{each.seconds:.1f}",
        )
        for each in summarized(outcomes)
    ]
    widths = [max(map(len, column)) for column in zip(_COLUMNS, *rows, strict=True)]
    for row in (_COLUMNS, *rows):
        cells = [
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()

"""The report as one HTML page: a summary by API, a filter, and the exchange of each failure.

The page needs no network and no script to be read; the filter is a few lines of script.
"""

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from kraft_wire.conformance.case import Case
from kraft_wire.conformance.dump import exchange_lines
from kraft_wire.conformance.reports.summary import rerun_line, summarized
from kraft_wire.conformance.verdict import Exchange, Outcome, Verdict

__all__ = ["html_report"]

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --bad: #c62828; --good: #2e7d32; --dim: #888;
  --odd: #b26a00; }
body { font: 15px/1.45 system-ui, sans-serif; }
body { margin: 1.5rem auto; max-width: 70rem; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .25rem; }
table { border-collapse: collapse; width: 100%; margin: 1rem 0; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere; }
p { overflow-wrap: anywhere; }
details { border-bottom: 1px solid var(--line); padding: .35rem 0; }
summary { cursor: pointer; overflow-wrap: anywhere; }
pre { overflow-x: auto; font-size: 12px; line-height: 1.35; }
mark { background: #ffca2866; color: inherit; }
.failed, .error { color: var(--bad); font-weight: 600; }
.differs { color: var(--odd); font-weight: 600; }
.passed { color: var(--good); } .not-supported, .about { color: var(--dim); }
input { font: inherit; width: 100%; padding: .4rem; box-sizing: border-box; }
@media (max-width: 40rem) { .wide { display: none; } body { margin: .5rem auto; } }
"""

_SCRIPT: Final = """
const box = document.querySelector("input"), rows = document.querySelectorAll("details");
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\\s+/);
  for (const row of rows) row.hidden = !words.every(w => row.dataset.text.includes(w));
});
"""


_ORDER: Final = (
    Verdict.FAILED,
    Verdict.ERROR,
    Verdict.DIFFERS,
    Verdict.NOT_SUPPORTED,
    Verdict.PASSED,
)


def html_report(
    outcomes: Sequence[Outcome], cases: Sequence[Case], address: str, profile: str
) -> str:
    """Return the page."""
    by_name = {each.name: each for each in cases}
    failures = sum(each.verdict in (Verdict.FAILED, Verdict.ERROR) for each in outcomes)
    others = sum(each.verdict is Verdict.DIFFERS for each in outcomes)
    verdict = f"{failures} of {len(outcomes)} rows failed" if failures else "no row failed"
    if others:
        verdict += f", {others} differ{'s' if others == 1 else ''}"
    rows = sorted(outcomes, key=lambda each: _ORDER.index(each.verdict))
    body = "".join(_row(each, by_name[each.name], address) for each in rows)
    return (
        "<!doctype html>\n<html lang=en><meta charset=utf-8>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(address)}: {verdict}</title><style>{_STYLE}</style>"
        f"<h1>Conformance of {escape(address)}</h1>"
        f"<div class=about>{verdict}; profile {escape(profile)}</div>"
        f"{''.join(_summary(outcomes))}"
        "<input placeholder='Filter: words of name, verdict, KIP' aria-label=Filter>"
        f"{body}<script>{_SCRIPT}</script></html>\n"
    )


def _summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    yield "<table><tr><th>API<th>rows<th>passed<th>failed<th>differs<th class=wide>not supported"
    yield "<th class=wide>seconds</tr>"
    for each in summarized(outcomes):
        failed = each.counts[Verdict.FAILED] + each.counts[Verdict.ERROR]
        yield f"<tr><td>{escape(each.name)}<td>{each.rows}<td>{each.counts[Verdict.PASSED]}"
        yield f"<td{' class=failed' if failed else ''}>{failed}"
        yield f"<td>{each.counts[Verdict.DIFFERS]}"
        yield f"<td class=wide>{each.counts[Verdict.NOT_SUPPORTED]}"
        yield f"<td class=wide>{each.seconds:.1f}</tr>"
    yield "</table>"


def _row(outcome: Outcome, case: Case, address: str) -> str:
    kind = str(outcome.verdict).replace(" ", "-")
    is_telling = outcome.verdict.is_finding
    is_open = is_telling and outcome.verdict is not Verdict.DIFFERS
    text = f"{outcome.row} {outcome.verdict} {case.source} {case.expectation}".lower()
    parts = [
        f"<details{' open' if is_open else ''} data-text={_quoted(text)}>",
        f"<summary><span class={kind}>{outcome.verdict}</span> {escape(outcome.row)}</summary>",
        f"<p>{escape(case.expectation)}<br><span class=about>{escape(case.source)}</span></p>",
        f"<p class=about>{escape(case.steps)}</p>",
    ]
    if outcome.verdict is not Verdict.PASSED:
        place = f" at <code>{escape(outcome.path)}</code>" if outcome.path else ""
        parts.append(
            f"<p>Expected {escape(outcome.expected)}; got {escape(outcome.seen)}{place}</p>"
        )
    if is_telling:
        parts += [f"<pre>{''.join(_exchange(each, outcome))}</pre>" for each in outcome.exchanges]
        parts.append(f"<pre>{escape(rerun_line(outcome, address))}</pre>")
    return "".join(parts) + "</details>\n"


def _exchange(exchange: Exchange, outcome: Outcome) -> Iterator[str]:
    is_last = exchange is outcome.exchanges[-1]
    for line in exchange_lines(exchange, outcome.path if is_last else ""):
        shown = escape(line)
        yield f"<mark>{shown}</mark>\n" if line.startswith(">>") else f"{shown}\n"


def _quoted(text: str) -> str:
    return f'"{escape(text, quote=True)}"'

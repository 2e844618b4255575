"""The report in the XML form of JUnit, which build servers read."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, tostring

from kraft_wire.conformance.dump import exchange_lines
from kraft_wire.conformance.reports.summary import summarized
from kraft_wire.conformance.verdict import Outcome, Verdict

__all__ = ["junit_report"]

_ELEMENTS = {
    Verdict.FAILED: "failure",
    Verdict.DIFFERS: "failure",
    Verdict.ERROR: "error",
    Verdict.NOT_SUPPORTED: "skipped",
}


def junit_report(outcomes: Sequence[Outcome]) -> str:
    """Return one `testsuite` for each API."""
    suites = Element("testsuites", name="kraft-wire conform")
    for summary in summarized(outcomes):
        suite = SubElement(
            suites,
            "testsuite",
            name=summary.name,
            tests=str(summary.rows),
            failures=str(summary.counts[Verdict.FAILED] + summary.counts[Verdict.DIFFERS]),
            errors=str(summary.counts[Verdict.ERROR]),
            skipped=str(summary.counts[Verdict.NOT_SUPPORTED]),
            time=f"{summary.seconds:.3f}",
        )
        for each in outcomes:
            if each.name.partition(".")[0] == summary.name:
                _add(suite, each)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(suites, "unicode") + "\n"


def _add(suite: Element, outcome: Outcome) -> None:
    name = f"{outcome.name.partition('.')[2]}/{outcome.version}"
    classname = f"conform.{outcome.name.partition('.')[0]}"
    found = SubElement(
        suite, "testcase", name=name, classname=classname, time=f"{outcome.seconds:.3f}"
    )
    kind = _ELEMENTS.get(outcome.verdict)
    if kind is None:
        return
    message = _printable(f"expected {outcome.expected}, got {outcome.seen}")
    detail = SubElement(found, kind, message=message)
    if outcome.verdict is not Verdict.NOT_SUPPORTED:
        lines = [
            line for each in outcome.exchanges[-1:] for line in exchange_lines(each, outcome.path)
        ]
        detail.text = _printable("\n".join(lines))


def _printable(text: str) -> str:
    """Replace characters that XML 1.0 cannot hold."""
    return "".join(
        each if each >= " " or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text
    )

"""The report as one JSON object; the exchanges are hexadecimal frames."""

import json
from collections.abc import Sequence

from kraft_wire.conformance.reports.summary import rerun_line
from kraft_wire.conformance.verdict import Outcome, Verdict

__all__ = ["json_report"]


def json_report(outcomes: Sequence[Outcome], address: str, profile: str) -> str:
    """Return the report: address, profile, counts by verdict, and a row for each outcome."""
    counts = {str(each): sum(o.verdict is each for o in outcomes) for each in Verdict}
    document = {
        "address": address,
        "profile": profile,
        "counts": counts,
        "rows": [_row(each, address) for each in outcomes],
    }
    return json.dumps(document, indent=1) + "\n"


def _row(outcome: Outcome, address: str) -> dict[str, object]:
    row: dict[str, object] = {
        "name": outcome.name,
        "version": outcome.version,
        "verdict": str(outcome.verdict),
        "seconds": round(outcome.seconds, 4),
    }
    if outcome.verdict is not Verdict.PASSED:
        row |= {"expected": outcome.expected, "seen": outcome.seen}
    if outcome.verdict.is_finding:
        row |= {
            "path": outcome.path,
            "run_again": rerun_line(outcome, address),
            "exchanges": [
                {
                    "api_key": each.api_key,
                    "version": each.version,
                    "request": each.request.hex(),
                    "response": None if each.response is None else each.response.hex(),
                }
                for each in outcome.exchanges
            ],
        }
    return row

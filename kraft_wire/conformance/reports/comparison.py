"""The report of a comparison: every field that differs, with a row that shows it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from kraft_wire.conformance.differences import Difference

__all__ = ["comparison_json", "comparison_text"]


def comparison_text(found: Sequence[Difference], left: str, right: str) -> Iterator[str]:
    """Yield the lines for a terminal."""
    for each in found:
        more = f" and {len(each.rows) - 1} more rows" if len(each.rows) > 1 else ""
        yield f"{each.path}  ({each.rows[0]}{more})"
        yield f"  {left}: {_short(each.left)}"
        yield f"  {right}: {_short(each.right)}"
    yield f"{len(found)} differences between {left} and {right}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def comparison_json(found: Sequence[Difference], left: str, right: str) -> str:
    """Return the report as one JSON object."""
    rows = [asdict(each) for each in found]
    return json.dumps({"left": left, "right": right, "differences": rows}, indent=1) + "\n"

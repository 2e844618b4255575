"""Verdicts of a suite's tests, read from `go test -v` and JUnit files, and the table of all."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from pathlib import Path

__all__ = ["FAILED", "PASSED", "SKIPPED", "leaves", "of_go", "of_junit", "table", "written"]

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
MAKES = ("kraft-wire", "Apache Kafka")
_GO = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+) ")
_VERDICTS = {"PASS": PASSED, "FAIL": FAILED, "SKIP": SKIPPED}
_SECTION = "## Clients' own tests\n"
Results = dict[str, str]


def of_go(output: str) -> Results:
    """Return the verdict of each test and subtest that has ended."""
    found = (_GO.match(line) for line in output.splitlines())
    return {each[2]: _VERDICTS[each[1]] for each in found if each is not None}


def of_junit(path: Path) -> Results:
    """Return the verdicts of a JUnit file; an error of a fixture is a failure."""
    return {
        f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name', '')}": (
            FAILED
            if case.find("failure") is not None or case.find("error") is not None
            else SKIPPED
            if case.find("skipped") is not None
            else PASSED
        )
        for case in ET.parse(path).iter("testcase")
    }


def leaves(found: Results) -> Results:
    """Return the tests without subtests, and those that failed although no subtest did."""
    parents = {name.rpartition("/")[0] for name in found} - {""}
    told = {name.rpartition("/")[0] for name, verdict in found.items() if verdict == FAILED}
    return {
        name: verdict
        for name, verdict in found.items()
        if name not in parents or (verdict == FAILED and name not in told)
    }


def table(found: Mapping[str, Mapping[str, Results]]) -> str:
    """Return the table of suites, by make, with the names of the tests that failed."""
    lines = [
        "| suite | tests | kraft-wire | Apache Kafka 4.3.1 | failed on both | failed on one |",
        "|---|---|---|---|---|---|",
    ]
    for suite, of_makes in found.items():
        ours, theirs = (of_makes.get(make, {}) for make in MAKES)
        bad = [_with(FAILED, each) for each in (ours, theirs)]
        one = [
            f"{make}: {_named(mine - others)}"
            for make, mine, others in zip(MAKES, bad, reversed(bad), strict=True)
            if mine - others
        ]
        run = ours.keys() | theirs.keys()
        run -= _with(SKIPPED, ours) | _with(SKIPPED, theirs)
        cells = [suite, str(len(run)), _count(ours), _count(theirs), _named(bad[0] & bad[1])]
        lines.append(f"| {' | '.join([*cells, '; '.join(one) or 'none'])} |")
    return "\n".join(lines) + "\n"


def _with(verdict: str, found: Results) -> set[str]:
    return {name for name, each in found.items() if each == verdict}


def _count(found: Results) -> str:
    verdicts = [*found.values()]
    return f"{verdicts.count(PASSED)} passed" if verdicts else "not run"


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{each}`" for each in sorted(names)) or "none"


def written(page: str, lines: str) -> str:
    """Return the page with the table of its section replaced."""
    before, section, rest = page.partition(_SECTION)
    assert section, "the page has no such section"
    start = rest.index("| suite |")
    return before + section + rest[:start] + lines.rstrip("\n") + rest[rest.index("\n\n", start) :]

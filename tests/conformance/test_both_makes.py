"""A whole run of the suite on our node and one on Apache's: every case passes, as recorded.

These tests share the two runs, so they are in one file: a worker takes whole files.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from kraft_wire.conformance.differences import Difference, differences
from kraft_wire.conformance.recording import Recording
from kraft_wire.conformance.verdict import Outcome
from tests.conformance.judged_nodes import not_passed
from tests.conformance.recording import PROFILE, RECORDING
from tests.tidiness import CHECKOUT


def test_our_node_passes_every_case(our_outcomes: list[Outcome]) -> None:
    assert not_passed(our_outcomes) == []


@pytest.mark.java
def test_apache_passes_every_case(apache_outcomes: list[Outcome]) -> None:
    """A case that Apache Kafka fails is a wrong case."""
    assert not_passed(apache_outcomes) == []


def recording_of(outcomes: Sequence[Outcome]) -> Recording:
    return Recording.of(outcomes, "judged", PROFILE)


def shown(found: Sequence[Difference]) -> list[str]:
    return [f"{each.path}: {each.left} | {each.right} ({each.rows[0]})" for each in found]


def listed() -> list[tuple[str, str]]:
    """Return field and rows of DEVIATIONS.md's table as patterns; only `*` is a wildcard."""
    text = (CHECKOUT / "docs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    table = text.partition("\n## On the wire\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", table, re.M)
    return [(field.replace("[", "[[]"), rows) for field, rows in found]


def is_listed(found: Difference, pattern: tuple[str, str]) -> bool:
    field, rows = pattern
    return fnmatchcase(found.path, field) and all(fnmatchcase(each, rows) for each in found.rows)


def test_our_node_differs_from_recorded_apache_as_listed(our_outcomes: list[Outcome]) -> None:
    found = differences(Recording.read(RECORDING), recording_of(our_outcomes))
    patterns = listed()
    assert (
        shown([each for each in found if not any(is_listed(each, one) for one in patterns)]) == []
    )
    assert [one for one in patterns if not any(is_listed(each, one) for each in found)] == []


@pytest.mark.java
def test_apache_does_what_was_recorded(apache_outcomes: list[Outcome]) -> None:
    found = differences(Recording.read(RECORDING), recording_of(apache_outcomes))
    assert shown(found) == []

"""What commands print for people: values are never markup, and the first and last rows are there.

A path or a reason may have brackets, which rich would take for a style and leave out.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_wire.cli.audit import _ROWS_MAX, print_table
from kraft_wire.cli.bootstrap import addresses_of
from kraft_wire.cli.groups.reset import Target, new_offsets
from kraft_wire.cli.known_keys import unknown_key
from kraft_wire.cli.node_dirs import paths_of
from kraft_wire.cli.repair import _Finding, _show
from kraft_wire.cli.sim.totals import _FAILURES_MAX, show_totals
from kraft_wire.client.cluster import EARLIEST_TIMESTAMP, ClusterRefused
from kraft_wire.client.connection import BrokerConnectionError
from kraft_wire.model import TopicPartition
from kraft_wire.settings.broker import DYNAMIC_BROKER_KEYS
from kraft_wire.sim.runs.campaign import Totals
from kraft_wire.sim.runs.run import Failure
from kraft_wire.storage.recovery.damage import Damage
from tests.tidiness import Module, modules

PLACES = ("kraft_wire/cli/", "kraft_wire/spark/verbs/")
NAME = "a[bold]b[/]c [red]"
KEYS = [TopicPartition("t", 0), TopicPartition("t", 1)]


def printed_as_markup(module: Module) -> list[str]:
    """The calls of `print` of a console whose text has a value that may have brackets."""
    found = []
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        is_print = node.func.attr == "print" and node.args and "console" in ast.unparse(node.func)
        is_plain = any(each.arg == "markup" for each in node.keywords)
        if not is_print or is_plain or not isinstance(node.args[0], ast.JoinedStr):
            continue
        values = [each for each in node.args[0].values if isinstance(each, ast.FormattedValue)]
        if any(each.format_spec is None for each in values):
            found.append(f"{module.path}:{node.lineno}: {ast.unparse(node.args[0])}")
    return found


STYLED = (
    "failure.invariant",  # the style is in the text, and the name is ours
    "', '.join(numbers)",
    "table.row_count",
    "_ROWS_MAX",
    "note",
    "found.runs",
    "counted",
    "gave two trace hashes",
)


def test_values_are_printed_as_they_are() -> None:
    found = [
        each for one in modules() if one.path.startswith(PLACES) for each in printed_as_markup(one)
    ]
    assert [each for each in found if not any(part in each for part in STYLED)] == []


# -- repair --------------------------------------------------------------------------------------


def finding(*, is_cut: bool) -> _Finding:
    return _Finding(
        Damage(partition=None, path=NAME, reason=NAME, consequence=NAME), [NAME], is_cut
    )


@pytest.mark.parametrize(
    ("findings", "is_cutting", "end"),
    [
        ([], False, f"7 logs in {NAME} checked: no damage"),
        (
            [finding(is_cut=True)],
            True,
            f"7 logs in {NAME} checked: all damage is removed; the node can be started",
        ),
        (
            [finding(is_cut=True), finding(is_cut=False)],
            True,
            f"7 logs in {NAME} checked: 1 left that cannot be removed",
        ),
        (
            [finding(is_cut=False)],
            False,
            f"7 logs in {NAME} checked; to remove the shown damage, repeat with --cut",
        ),
    ],
)
def test_repair_shows_names_with_brackets(
    capsys: pytest.CaptureFixture[str], findings: list[_Finding], is_cutting: bool, end: str
) -> None:
    _show(NAME, findings, 7, is_cutting=is_cutting)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == end
    assert sum(NAME in line for line in lines) == 1 + 4 * len(findings)


# -- audit ---------------------------------------------------------------------------------------


def audit_result(*findings: Any) -> Any:
    summary = {"nodes": 1, "partitions": 1, "batches": 1, "bytes": 1, "errors": len(findings)}
    return SimpleNamespace(
        findings=list(findings), summary=lambda: summary, count=lambda severity: 0
    )


def row(offset: int, position: int = -1, detail: str = "d") -> Any:
    return SimpleNamespace(
        severity="error",
        check="gap",
        node="n",
        place="t-0",
        offset=offset,
        file="f.log",
        position=position,
        detail=detail,
    )


@pytest.mark.parametrize(
    ("found", "cells"),
    [
        (row(-1), ["error", "gap", "n", "t-0", "f.log", "d"]),
        (row(0), ["error", "gap", "n", "t-0", "0", "f.log", "d"]),
        (row(7, 0), ["error", "gap", "n", "t-0", "7", "f.log", "@0", "d"]),
        (row(7, 9, NAME), ["error", "gap", "n", "t-0", "7", "f.log", "@9", *NAME.split()]),
    ],
)
def test_row_of_a_finding_has_an_offset_and_a_position_where_they_are_known(
    capsys: pytest.CaptureFixture[str], found: Any, cells: list[str]
) -> None:
    print_table(audit_result(found), Path(NAME))
    lines = capsys.readouterr().out.splitlines()
    (line,) = [each for each in lines if "f.log" in each]
    assert line.split() == cells
    assert lines[-1] == f"report: {NAME}/report.html"


@pytest.mark.parametrize(("count", "more"), [(_ROWS_MAX, ""), (_ROWS_MAX + 2, "… and 2 more")])
def test_many_findings_are_counted_beyond_a_number_of_rows(
    capsys: pytest.CaptureFixture[str], count: int, more: str
) -> None:
    print_table(audit_result(*(row(each) for each in range(count))))
    text = capsys.readouterr().out
    assert text.count("f.log") == min(count, _ROWS_MAX)
    assert (more in text) if more else ("more" not in text)


# -- campaigns -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, _FAILURES_MAX, _FAILURES_MAX + 1])
def test_violations_are_shown_in_the_order_of_their_seeds(
    capsys: pytest.CaptureFixture[str], count: int
) -> None:
    failures = [(900 - at, Failure("S01 Name", f"text {900 - at}", 5, 0)) for at in range(count)]
    show_totals(Totals(seeds=3, failures=failures))
    text = capsys.readouterr().out
    if not count:
        assert text.rstrip().endswith("0 violations")
        return
    assert f"{count} violations, {min(count, _FAILURES_MAX)} shown" in text
    shown = [int(line.split()[0]) for line in text.splitlines() if "S01 Name" in line]
    assert shown == sorted(seed for seed, _ in failures)[:_FAILURES_MAX]


# -- arguments -----------------------------------------------------------------------------------


def test_lists_of_directories_have_no_empty_entry() -> None:
    assert paths_of(["a,,b,", ",", "c"]) == ["a", "b", "c"]


def test_lists_of_addresses_have_no_empty_entry_and_no_space() -> None:
    assert addresses_of(" a:1 ,, b:2, ") == ("a:1", "b:2")
    for text in ("", " , "):
        with pytest.raises(BrokerConnectionError, match="the list of addresses is empty"):
            addresses_of(text)


def test_every_dynamic_key_is_known() -> None:
    assert [key for key in DYNAMIC_BROKER_KEYS if unknown_key(key) is not None] == []
    assert unknown_key("listener.name.a.ssl.keystore.location") is None
    assert unknown_key("log.retention.hour") == (
        'unknown key "log.retention.hour"; did you mean "log.retention.hours"?'
    )


# -- reset ---------------------------------------------------------------------------------------


class FakeCluster:
    """Two partitions with offsets 10 to 20."""

    def offsets_at(self, times: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {key: 10 if time == EARLIEST_TIMESTAMP else 20 for key, time in times.items()}


@pytest.mark.parametrize(
    ("shift", "offsets"),
    [(0, [15, 16]), (2, [17, 18]), (-3, [12, 13]), (-6, [10, 10]), (4, [19, 20]), (9, [20, 20])],
)
def test_shift_stays_within_the_log(shift: int, offsets: list[int]) -> None:
    committed = {KEYS[0]: 15, KEYS[1]: 16}
    found = new_offsets(FakeCluster(), KEYS, committed, Target(shift=shift))  # type: ignore[arg-type]  # of what is asked
    assert list(found.values()) == offsets


def test_partition_without_a_committed_offset_cannot_be_shifted() -> None:
    """kafka-consumer-groups: --shift-by needs one, and --to-current takes the end."""
    committed = {KEYS[0]: 15}
    with pytest.raises(ClusterRefused, match="t-1 has no committed offset to shift"):
        new_offsets(FakeCluster(), KEYS, committed, Target(shift=1))  # type: ignore[arg-type]  # of what is asked
    found = new_offsets(FakeCluster(), KEYS, committed, Target(shift=0))  # type: ignore[arg-type]  # of what is asked
    assert list(found.values()) == [15, 20]

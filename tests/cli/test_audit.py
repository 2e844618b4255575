"""`kraft-wire audit` as a process: what it prints, how it ends, and without the extra."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from tests.audit.clean_set import write_clean_set

FIELDS = ["check", "severity", "node", "topic", "partition", "offset", "file", "position", "detail"]


def run(*arguments: object, code: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command; ``code`` runs before it in the same process."""
    program = f"{code}\nfrom kraft_wire.cli.main import main\nmain()\n"
    return subprocess.run(
        [sys.executable, "-c", program, "audit", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "", "COLUMNS": "200", **variables},
    )


@pytest.fixture
def nodes(tmp_path: Path) -> list[Path]:
    return write_clean_set(tmp_path / "clean")


def damage(node: Path) -> Path:
    """Turn a bit in the middle of a segment; return the segment."""
    segment = sorted((node / "orders-0").glob("*.log"))[1]
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    return segment


def test_clean_directories_end_with_0_and_a_summary(nodes: list[Path]) -> None:
    done = run(*nodes, "--json")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    summary = json.loads(line)["summary"]
    assert list(summary) == ["nodes", "partitions", "batches", "bytes", "errors"]
    assert (summary["nodes"], summary["partitions"], summary["errors"]) == (3, 5, 0)


def test_damage_is_one_object_and_exit_code_1(nodes: list[Path], tmp_path: Path) -> None:
    segment = damage(nodes[1])
    done = run(*nodes, "--json", "--output", tmp_path / "out")
    assert done.returncode == 1, done.stderr
    finding, summary = map(json.loads, done.stdout.splitlines())
    assert list(finding) == FIELDS
    assert (finding["check"], finding["severity"], finding["node"]) == ("crc", "error", "2")
    assert (finding["topic"], finding["partition"]) == ("orders", 0)
    assert finding["file"] == segment.name
    assert summary["summary"]["errors"] == 1
    rows = parquet.read_table(tmp_path / "out" / "findings.parquet").to_pylist()
    assert rows == [finding]
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")


def test_directories_may_come_as_a_comma_list(nodes: list[Path]) -> None:
    done = run(",".join(map(str, nodes)), "--json")
    assert json.loads(done.stdout)["summary"]["nodes"] == 3


def test_fail_on_says_what_makes_the_exit_code(nodes: list[Path]) -> None:
    with max((nodes[0] / "orders-0").glob("*.log")).open("ab") as file:
        file.write(b"\0" * 100)  # what a crash leaves behind the last batch
    assert run(*nodes).returncode == 0
    assert run(*nodes, "--fail-on", "warn").returncode == 1
    damage(nodes[1])
    assert run(*nodes, "--fail-on", "never").returncode == 0
    assert run(*nodes, "--checks", "gap,index").returncode == 0


def test_table_shows_findings_and_what_was_read(nodes: list[Path]) -> None:
    segment = damage(nodes[2])
    done = run(*nodes)
    assert segment.name in done.stdout
    assert "orders-0" in done.stdout
    assert "3 nodes, 5 partitions" in done.stdout
    assert "1 errors, 0 warnings, 0 notes" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["/nowhere"], "/nowhere: no such directory"),
        (["NODE", "--checks", "luck"], "--checks luck: the checks are crc, gap"),
        (["NODE", "--acks", "/nowhere"], "/nowhere: No such file"),
        (["NODE", "--high-watermark", "/nowhere"], "/nowhere: No such file"),
        (["NODE", "--output", "/proc/none"], "/proc/none"),
        (["NODE", "--output", "NODE/report"], "is inside the log directory"),
    ],
)
def test_what_cannot_run_is_one_line_and_exit_code_2(
    nodes: list[Path], arguments: list[str], reason: str
) -> None:
    done = run(*[each.replace("NODE", str(nodes[0])) for each in arguments], "--json")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("kraft-wire audit: ")
    assert reason in line


def test_reason_is_plain_text_on_a_terminal_too() -> None:
    """Rich would colour numbers and paths, as if they were marked."""
    done = run("/nowhere/7", FORCE_COLOR="1", TERM="xterm")
    assert done.returncode == 2
    assert done.stderr.startswith("kraft-wire audit: /nowhere/7: ")
    assert "\x1b" not in done.stderr


def test_missing_extra_is_one_line_that_says_what_to_install(nodes: list[Path]) -> None:
    hide = "import sys; sys.modules['numpy'] = None; sys.modules['pyarrow'] = None"
    done = run(nodes[0], code=hide)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    pip = f"{sys.executable} -m pip install"
    assert line == (
        f"kraft-wire audit: numpy and pyarrow not installed: {pip} 'numpy>=2' 'pyarrow>=18'"
    )


def test_help_needs_no_extra() -> None:
    hide = "import sys; sys.modules['numpy'] = None; sys.modules['pyarrow'] = None"
    done = run("--help", code=hide)
    assert done.returncode == 0, done.stderr
    assert "NODE_DIR" in done.stdout

"""Apache's tools asked about both makes in the same situation: their answers are compared as text.

Over the wire: a quorum of three of ours and one of three of Apache's, formatted by Apache's tool.
On disk: the logs of one mixed quorum, and the snapshots that both makes take of the same metadata.
Times, sizes, ids and offsets are left out of the comparison, everything else has to be equal, but
for the features that are not served here (docs/DEVIATIONS.md).
"""

from __future__ import annotations

import re
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from tests.apache.jars import RELEASE
from tests.apache.java_process import Outcome
from tests.apache.tools import run_tool
from tests.mixed.controller import OURS
from tests.mixed.log_bytes import PARTITION
from tests.mixed.quorum import MixedQuorum
from tests.mixed.steps import Steps, judge, loaded, snapshots, until_changes

APACHE = RELEASE
SOME = 60
TREE_TRIES = 5
SHELL_TRIES = 6
SHELL_SECONDS_MAX = 20
QUICK_SNAPSHOTS = {"metadata.log.max.snapshot.interval.ms": "4000"}
QUESTIONS = (
    ("kafka-metadata-quorum", "describe", "--status"),
    ("kafka-metadata-quorum", "describe", "--replication"),
    ("kafka-features", "describe"),
)


def tools_alike(home: Path, steps: Steps) -> None:
    """Compare everything."""
    answers = {}
    for make in (APACHE, OURS):
        answers[make] = _asked(home / make, make)
        steps.step(f"asked three controllers of make {make}")
    for question in QUESTIONS:
        ours, theirs = answers[OURS][question], answers[APACHE][question]
        assert ours == theirs, f"{question}:\n{ours}\n---\n{theirs}"
        steps.figure(f"{' '.join(question)}: the same answer")
    _files_alike(home / "files", steps)


def _asked(home: Path, make: str) -> dict[tuple[str, ...], str]:
    with MixedQuorum(home, dict.fromkeys((1, 2, 3), make), voters=(1, 2, 3)) as quorum:
        for node in quorum.nodes.values():
            node.format(make=APACHE)
        quorum.start()
        for node_id in quorum.nodes:
            quorum.has_caught_up(node_id)
        return {
            question: _without_figures(_answer(quorum, question), quorum) for question in QUESTIONS
        }


def _answer(quorum: MixedQuorum, question: tuple[str, ...]) -> str:
    """What the tool prints, asked again where its controllers were too busy to answer in time."""

    def asked() -> str | None:
        done = quorum.tool(*question)
        return done.stdout if done.exit_code == 0 else None

    return quorum.until(f"an answer to {question}", asked)


def _without_figures(shown: str, quorum: MixedQuorum) -> str:
    """Leave out who leads, ports, offsets and times; the order of rows by their first word."""
    for node in quorum.nodes.values():
        shown = shown.replace(str(node.port), f"PORT{node.node_id}")
    shown = re.sub(r"^(LeaderId|LeaderEpoch|HighWatermark|Max\w+):.*$", r"\1: N", shown, flags=re.M)
    shown = re.sub(r"\b\d{2,}\b", "N", shown)
    shown = re.sub(r"Epoch: (N|\d)", "Epoch: N", shown)
    lines = [re.sub(r"\s+", " ", line).strip() for line in shown.splitlines()]
    if lines and lines[0].startswith("NodeId"):
        lines = [re.sub(r" \S+ (Leader|Follower)$", " N STATUS", line) for line in lines]
        lines = [re.sub(r"^(\d \S+) \S+ \d+ \S+", r"\1 N N N", line) for line in lines]
        lines = [lines[0], *sorted(lines[1:])]
    return "\n".join(lines)


def _files_alike(home: Path, steps: Steps) -> None:
    """Dump the logs and snapshots of a mixed quorum, and walk the snapshots with the shell."""
    makes = {1: APACHE, 2: OURS, 3: OURS}
    with MixedQuorum(home, makes, voters=(1, 2, 3), overrides=QUICK_SNAPSHOTS) as quorum:
        for node in quorum.nodes.values():
            node.format()
        quorum.start(1)  # a JVM that comes after the first snapshot is sent that instead of the log
        quorum.until("node 1 answers", lambda: _listens(quorum[1].port))
        quorum.start(2, 3)
        with loaded(quorum) as load:
            until_changes(quorum, load, SOME)
        judge(quorum, load, steps)
        target = quorum.describe().high_watermark
        for node_id in (1, 2):
            quorum.until(
                f"a snapshot of node {node_id} behind {target}",
                lambda each=node_id: any(  # type: ignore[misc]  # a default binds it
                    int(name.split("-")[0]) >= target for name in snapshots(quorum, each)
                ),
            )
        for node in quorum.nodes.values():
            node.stop()
        logs = {node_id: _dump(_log(quorum, node_id)) for node_id in (1, 2)}
        common = min(len(each) for each in logs.values())
        assert common > SOME, {each: lines[:2] for each, lines in logs.items()}
        apart = next(
            (each for each in zip(logs[1], logs[2], strict=False) if len(set(each)) > 1), None
        )
        assert apart is None, apart
        steps.figure(f"kafka-dump-log on the logs: {common} lines, the same")
        newest = {node_id: _newest(quorum, node_id) for node_id in (1, 2)}
        payloads = {each: _payloads(_dump(newest[each])) for each in newest}
        assert payloads[1] == payloads[2], set(payloads[1]) ^ set(payloads[2])
        steps.figure(f"kafka-dump-log on the snapshots: {len(payloads[1])} records, the same")
        lines = _same_tree(newest)
        steps.figure(f"kafka-metadata-shell on them: {lines} lines, the same")


def _same_tree(newest: dict[int, Path]) -> int:
    """Return how many lines the shell shows of each snapshot; fail where they differ.

    On a busy machine the shell runs its command before it has read the whole file, so it is asked
    again while the trees differ.
    """
    for _ in range(TREE_TRIES):
        trees = {each: _tree(newest[each]) for each in newest}
        if trees[1] == trees[2]:
            break
    assert trees[1] == trees[2], trees
    return len(trees[1])


def _listens(port: int) -> bool:
    """Whether a process takes connections there; error: OSError where none does."""
    with socket.create_connection(("127.0.0.1", port), timeout=1.0):
        return True


def _log(quorum: MixedQuorum, node_id: int) -> Path:
    return min((quorum[node_id].data / PARTITION).glob("*.log"))


def _newest(quorum: MixedQuorum, node_id: int) -> Path:
    return quorum[node_id].data / PARTITION / list(snapshots(quorum, node_id))[-1]


def _dump(file: Path) -> list[str]:
    """What the tool shows, without the line that names the file."""
    arguments = ["--cluster-metadata-decoder", "--files", str(file)]
    done = run_tool("kafka-dump-log", arguments)
    assert done.exit_code == 0, done.text
    return [line for line in done.stdout.splitlines() if not line.startswith("Dumping ")]


def _payloads(lines: list[str]) -> list[str]:
    """The records of a snapshot in any order; header and footer carry times of their own."""
    payloads = [line.split("payload: ", 1)[1] for line in lines if "payload: " in line]
    return sorted(payloads)


def _tree(snapshot: Path) -> list[str]:
    """What the shell shows of a snapshot from its root on."""
    found = _asked_shell(snapshot, "find", "/")
    paths = [line for line in found.stdout.splitlines() if line.startswith("/")]
    shown = [*sorted(path for path in paths if "provenance" not in path and "local" not in path)]
    levels = "/image/features/metadataVersion"
    cat = _asked_shell(snapshot, "cat", levels)
    return [*shown, *cat.stdout.splitlines()]


def _asked_shell(snapshot: Path, *command: str) -> Outcome:
    """Run a command of the shell; it is killed and started again where it waits for ever.

    The shell waits for the loader's first publication through `maybePublishMetadata`. There is none
    if the loader has taken the last batch before the reader of the file names its high watermark.
    """
    for _ in range(SHELL_TRIES):
        with suppress(subprocess.TimeoutExpired):
            arguments = ["--snapshot", str(snapshot), *command]
            done = run_tool("kafka-metadata-shell", arguments, timeout_s=SHELL_SECONDS_MAX)
            assert done.exit_code == 0, done.text
            return done
    raise AssertionError(f"the shell hung {SHELL_TRIES} times on {snapshot}")

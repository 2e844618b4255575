"""What the scenarios have in common: printed steps, a load in the background, the judgement.

Every scenario ends with the same questions: is each acknowledged change there at every controller,
and are the logs the same byte for byte?
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.mixed.load import Load
from tests.mixed.log_bytes import PARTITION, compare
from tests.mixed.quorum import MixedQuorum

ROW_SECONDS_MAX = 60.0
PATIENT = {
    "controller.quorum.election.timeout.ms": "4000",
    "controller.quorum.fetch.timeout.ms": "4000",
}
"""Properties of a voter that leaves it to others to stand for election."""

EAGER = {"controller.quorum.fetch.timeout.ms": "1000"}
"""Properties of a voter that asks before the others would grant it a pre-vote, and so votes for one
of them: a follower refuses until it gave up its leader itself (KIP-996)."""

Say = Callable[[str], None]


@dataclass
class Steps:
    """Prints what is done and what was seen, and keeps the figures for the table."""

    name: str
    say: Say = print
    figures: list[str] = field(default_factory=list)

    def step(self, text: str) -> None:
        """Something is done, or was seen."""
        self.say(f"   {text}")

    def figure(self, text: str) -> None:
        """Something was seen that belongs into the table."""
        self.figures.append(text)
        self.say(f"   -> {text}")


@contextmanager
def loaded(quorum: MixedQuorum, *node_ids: int) -> Iterator[Load]:
    """Change configuration at the named controllers (all of them) meanwhile."""
    asked = node_ids or tuple(quorum.nodes)
    load = Load(lambda: [quorum[each].address for each in asked if quorum[each].answers])
    load.start()
    try:
        yield load
    finally:
        load.finish()


def until_changes(quorum: MixedQuorum, load: Load, count: int) -> None:
    """Wait for that many more acknowledged changes."""
    target = load.changes + count
    quorum.until(f"{count} changes", lambda: load.changes >= target)


def row(quorum: MixedQuorum, node_id: int, status: str, lag: str = "") -> Sequence[str]:
    """Ask kafka-metadata-quorum until it shows a node in a state, with a lag where one is named."""
    deadline = time.monotonic() + ROW_SECONDS_MAX
    while True:
        shown = quorum.tool("kafka-metadata-quorum", "describe", "--replication")
        rows = [line.split() for line in shown.stdout.splitlines()[1:]]
        found = [each for each in rows if each and each[0] == str(node_id)]
        for each in found:
            if each[-1] == status and (not lag or each[3] == lag):
                return each
        assert time.monotonic() < deadline, f"{node_id} {status} {lag}: {shown.text}"


def judge(quorum: MixedQuorum, load: Load, steps: Steps) -> None:
    """Ask the questions at the end of a scenario."""
    high_watermark = quorum.describe().high_watermark
    for node_id in quorum.answering:
        quorum.has_caught_up(node_id)
        lost = load.lost_for_good(quorum[node_id].address)
        assert not lost, f"at node {node_id}: {lost}"
    found = compare({each: quorum[each].data for each in quorum.answering}, high_watermark)
    died = [node_id for node_id, node in quorum.nodes.items() if node.died]
    assert not died, quorum.logs()
    steps.figure(
        f"{load.changes} changes acknowledged, 0 lost at {len(quorum.answering)} controllers; "
        f"logs equal up to {high_watermark} ({found.size_bytes} bytes compared)"
    )


def snapshots(quorum: MixedQuorum, node_id: int) -> Mapping[str, bytes]:
    """The complete snapshots in a node's directory by file name, oldest first."""
    files = sorted((quorum[node_id].data / PARTITION).glob("*.checkpoint"))
    return {file.name: file.read_bytes() for file in files}


def first_segment(quorum: MixedQuorum, node_id: int) -> int:
    """The base offset of a node's oldest segment: where a fetched snapshot ends."""
    segments = sorted((quorum[node_id].data / PARTITION).glob("*.log"))
    return int(segments[0].stem)


def until_snapshots(quorum: MixedQuorum, node_id: int, count: int) -> None:
    """Wait until a node has written some."""
    quorum.until(
        f"{count} snapshots at node {node_id}", lambda: len(snapshots(quorum, node_id)) >= count
    )

"""Apache Kafka's recorded answers, which stand in for a JVM; `make record-apache` renews them.

``python -m tests.conformance.recording --only GLOB`` records new or changed cases alone.

The recording is one node of 4.3.1, and so are the stories beside it. The suite's own answers,
beside its profiles, are the fields in which nodes of one release agree that differ in their
settings, their ids and the size of their cluster.
"""

import argparse
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from kraft_wire.conformance import answers as answers_module
from kraft_wire.conformance.answers import Answers, Row, answered
from kraft_wire.conformance.case import all_cases
from kraft_wire.conformance.profile import read_profile
from kraft_wire.conformance.recording import Recording
from kraft_wire.conformance.run import rows_of
from kraft_wire.conformance.verdict import Outcome, Verdict
from tests.conformance.drawn import record_drawn
from tests.conformance.judged_nodes import PROFILE, Targets, apache_node, judged, three_apache_nodes
from tests.conformance.stories import record_stories

__all__ = ["ANSWERS", "PROFILE", "RECORDING", "main"]

OLDER, OLDER_RELEASE = "apache-3.9", "3.9.1"
NEWER, NEWER_RELEASE = "apache-4.4", "4.4.0"
RECORDING = Path(__file__).with_name("apache-4.3.1.jsonl.gz")
ANSWERS = Path(answers_module.__file__).with_name("profiles")

OTHER_SETTINGS: Final = {
    "node.id": "7",
    "broker.rack": "rack-of-the-suite",
    "num.partitions": "3",
    "log.segment.bytes": "104857600",
    "log.retention.ms": "432000000",
    "log.segment.ms": "86400000",
    "log.cleaner.delete.retention.ms": "3600000",
    "group.initial.rebalance.delay.ms": "200",
    "offsets.topic.num.partitions": "7",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Judge Apache Kafka, and keep what it answered."""
    parser = argparse.ArgumentParser("python -m tests.conformance.recording", description=__doc__)
    shown = "rows by pattern, as conform has them; the others stay as recorded (repeatable)"
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help=shown)
    parser.add_argument("--profile", choices=(PROFILE, OLDER, NEWER), help="only this release")
    parsed = parser.parse_args(arguments)
    only = parsed.only
    profiles = (PROFILE, OLDER, NEWER) if parsed.profile is None else (parsed.profile,)
    with TemporaryDirectory() as scratch:
        directory = Path(scratch)
        if PROFILE in profiles:
            record(directory, only)
            with apache_node(made(directory, "stories")) as node:
                record_stories(node, only)
            if not only:
                record_drawn()
        for profile, release in ((OLDER, OLDER_RELEASE), (NEWER, NEWER_RELEASE)):
            if profile in profiles and order_of(profile, only):
                record_release(directory, profile, release, only)


def record(directory: Path, only: Sequence[str]) -> None:
    """Write the recording of 4.3.1, and its answers."""
    outcomes, single = recorded(apache_node(made(directory, "single")), PROFILE, only)
    recording = Recording.of(outcomes, "Apache Kafka 4.3.1", PROFILE)
    merged(recording, only).write(RECORDING)
    print(f"{RECORDING}: {len(outcomes)} rows, {RECORDING.stat().st_size:,} bytes")
    _, other = recorded(other_node(made(directory, "other")), PROFILE, only)
    _, three = recorded(three_apache_nodes(made(directory, "three")), PROFILE, only)
    keep(PROFILE, "Apache Kafka 4.3.1", only, single, other, three)


def record_release(directory: Path, profile: str, release: str, only: Sequence[str]) -> None:
    """Write the answers of a release other than that of the recording."""
    one = apache_node(made(directory, f"{release}-one"), release)
    other = other_node(made(directory, f"{release}-other"), release)
    nodes = [recorded(each, profile, only)[1] for each in (one, other)]
    keep(profile, f"Apache Kafka {release}", only, *nodes)


def order_of(profile: str, only: Sequence[str] = ()) -> list[str]:
    """Return the names of a profile's rows in the order of a whole run, or of some of them."""
    return [each.name for each in rows_of(all_cases(), read_profile(profile), only)]


def merged(recording: Recording, only: Sequence[str]) -> Recording:
    """Return what a whole run would have recorded, with the other rows as they were."""
    if not only:
        return recording
    rows = {each.name: each for each in (*Recording.read(RECORDING).rows, *recording.rows)}
    return replace(recording, rows=tuple(rows[each] for each in order_of(PROFILE) if each in rows))


def made(directory: Path, name: str) -> Path:
    """Return a new directory below another."""
    (directory / name).mkdir()
    return directory / name


def other_node(directory: Path, release: str = "4.3.1") -> AbstractContextManager[Targets]:
    """Run a node whose settings and id are others."""
    return apache_node(directory, release, OTHER_SETTINGS)


def recorded(
    node: AbstractContextManager[Targets], profile: str, only: Sequence[str]
) -> tuple[list[Outcome], Mapping[str, Row]]:
    """Judge a node; return all outcomes, and the fields of each row that passed."""
    listeners = {each.name: each.listener for each in all_cases()}
    with node as targets:
        outcomes = judged(targets, *only, profile=profile, keeps_exchanges=True, has_answers=False)
    for each in outcomes:
        if each.verdict is not Verdict.PASSED:
            print(f"{each.row}: {each.verdict}: {each.expected}, {each.seen} at {each.path}")
    rows = {
        each.row: answered(each.name, each.version, targets[listeners[each.name]], each.exchanges)
        for each in outcomes
        if each.verdict is Verdict.PASSED
    }
    return outcomes, rows


def keep(profile: str, about: str, only: Sequence[str], *nodes: Mapping[str, Row]) -> None:
    """Write the answers of a release; with `only` the other rows stay as they were."""
    file = ANSWERS / f"{profile}.answers.jsonl.gz"
    found = Answers.of(about, nodes)
    if only:
        former = Answers.read(profile)
        assert former is not None, file
        chosen = set(order_of(profile, only))
        rows = {name: row for name, row in former.rows.items() if name not in chosen}
        rows |= found.rows
        order = [each for each in order_of(profile) if each in rows]
        found = replace(found, rows={each: rows[each] for each in order})
    found.write(file)
    fields = sum(len(each) for row in found.rows.values() for each in row)
    print(f"{file}: {len(found.rows)} rows, {fields} fields, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

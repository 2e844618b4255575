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
from kraft_wire.wire.generated.messages import RELEASE
from tests.conformance.drawn import record_drawn
from tests.conformance.judged_nodes import (
    GUARD,
    PROFILE,
    SNAPSHOTS,
    Targets,
    apache_node,
    is_guarded,
    judged,
    three_apache_nodes,
)
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
            open_node, guarded = both(directory, "stories", RELEASE, SNAPSHOTS)
            with open_node as open_targets, guarded as guarded_targets:
                record_stories(open_targets, guarded_targets, only)
            if not only:
                record_drawn()
        for profile, release in ((OLDER, OLDER_RELEASE), (NEWER, NEWER_RELEASE)):
            if profile in profiles and order_of(profile, only):
                record_release(directory, profile, release, only)


def record(directory: Path, only: Sequence[str]) -> None:
    """Write the recording of 4.3.1, and its answers."""
    outcomes, single = recorded(both(directory, "single", RELEASE, SNAPSHOTS), PROFILE, only)
    recording = Recording.of(outcomes, "Apache Kafka 4.3.1", PROFILE)
    merged(recording, only).write(RECORDING)
    print(f"{RECORDING}: {len(outcomes)} rows, {RECORDING.stat().st_size:,} bytes")
    _, other = recorded(both(directory, "other", RELEASE, OTHER_SETTINGS), PROFILE, only)
    _, three = recorded([three_apache_nodes(made(directory, "three"))], PROFILE, only)
    keep(PROFILE, "Apache Kafka 4.3.1", only, single, other, three)


def record_release(directory: Path, profile: str, release: str, only: Sequence[str]) -> None:
    """Write the answers of a release other than that of the recording."""
    one = both(directory, f"{release}-one", release, SNAPSHOTS)
    other = both(directory, f"{release}-other", release, OTHER_SETTINGS)
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


Node = AbstractContextManager[Targets]


def both(
    directory: Path, name: str, release: str, settings: Mapping[str, str]
) -> tuple[Node, Node]:
    """Return a node without an authorizer and one with it, which do not run yet."""
    return (
        apache_node(made(directory, name), release, settings),
        apache_node(made(directory, f"{name}-guarded"), release, {**settings, **GUARD}),
    )


def recorded(
    nodes: Sequence[Node], profile: str, only: Sequence[str]
) -> tuple[list[Outcome], Mapping[str, Row]]:
    """Judge a node, and one with an authorizer; return all outcomes, and the fields of each row.

    Rows that did not pass have no fields. The node that no row needs does not run.
    """
    outcomes: dict[str, Outcome] = {}
    rows: dict[str, Row] = {}
    order = order_of(profile, only)
    for guarded, node in zip((False, True), nodes, strict=False):
        if any(is_guarded(each) is guarded for each in order):
            with node as targets:
                found = judged_by(targets, profile, only, guarded=guarded)
            outcomes |= {each.row: each for each in found}
            rows |= fields_of(found, targets)
    return [outcomes[each] for each in order if each in outcomes], rows


def judged_by(
    targets: Targets, profile: str, only: Sequence[str], *, guarded: bool
) -> list[Outcome]:
    """Return all outcomes of a node, and print what did not pass."""
    outcomes = judged(
        targets, *only, profile=profile, keeps_exchanges=True, has_answers=False, guarded=guarded
    )
    for each in outcomes:
        if each.verdict is not Verdict.PASSED:
            print(f"{each.row}: {each.verdict}: {each.expected}, {each.seen} at {each.path}")
    return outcomes


def fields_of(outcomes: Sequence[Outcome], targets: Targets) -> Mapping[str, Row]:
    """Return the fields of each row that passed."""
    listeners = {each.name: each.listener for each in all_cases()}
    return {
        each.row: answered(each.name, each.version, targets[listeners[each.name]], each.exchanges)
        for each in outcomes
        if each.verdict is Verdict.PASSED
    }


def keep(profile: str, about: str, only: Sequence[str], *nodes: Mapping[str, Row]) -> None:
    """Write the answers of a release; with `only` the other rows stay as they were."""
    file = ANSWERS / f"{profile}.answers.jsonl.gz"
    rows = {**agreed(about, nodes, guarded=False), **agreed(about, nodes, guarded=True)}
    if only:
        former = Answers.read(profile)
        assert former is not None, file
        chosen = set(order_of(profile, only))
        rows |= {name: row for name, row in former.rows.items() if name not in chosen}
    found = Answers(about, {each: rows[each] for each in order_of(profile) if each in rows})
    found.write(file)
    fields = sum(len(each) for row in found.rows.values() for each in row)
    print(f"{file}: {len(found.rows)} rows, {fields} fields, {file.stat().st_size:,} bytes")


def agreed(about: str, nodes: Sequence[Mapping[str, Row]], *, guarded: bool) -> Mapping[str, Row]:
    """Return what nodes agree in, of rows that need an authorizer or of the others."""
    of_kind = [
        {name: row for name, row in node.items() if is_guarded(name) is guarded} for node in nodes
    ]
    asked = [each for each in of_kind if each]
    return Answers.of(about, asked).rows if asked else {}


if __name__ == "__main__":
    main()

"""Dynamic quorums: ours joins Apache's and leaves it, an Apache controller joins ours and leaves.

By kafka-metadata-quorum add-controller and remove-controller, run with the joining node's own
properties, and by the joining node itself (KIP-1186).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kraft_wire.model import Uuid, uuid_to_text
from tests.apache.jars import RELEASE
from tests.apache.tools import run_tool
from tests.mixed.controller import OURS
from tests.mixed.quorum import SNAPSHOTS_OFTEN, MixedQuorum
from tests.mixed.steps import Steps, judge, loaded, row, until_changes
from tests.process import write_properties

APACHE = RELEASE
AUTO_JOIN = {"controller.quorum.auto.join.enable": "true"}
SOME = 30
CHANGE_TRIES = 3


def ours_joins_apache(home: Path, steps: Steps) -> None:
    """A quorum of two Apache controllers takes ours in, twice."""
    with MixedQuorum(home, {1: APACHE, 2: APACHE, 3: OURS}, bootstrap=(1, 2)) as quorum:
        _come_and_go(quorum, steps, joining=3)


def apache_joins_ours(home: Path, steps: Steps) -> None:
    """A quorum of two of ours takes an Apache controller in, twice."""
    with MixedQuorum(home, {1: OURS, 2: OURS, 3: APACHE}, bootstrap=(1, 2)) as quorum:
        _come_and_go(quorum, steps, joining=3)


def _come_and_go(quorum: MixedQuorum, steps: Steps, joining: int) -> None:
    """Have a node join by the tool and leave, and join by itself and leave."""
    first = sorted(set(quorum.nodes) - {joining})
    _begin(quorum, first)
    steps.step(f"a dynamic quorum of {first}; node {quorum.leader()} leads; {joining} observes")
    with loaded(quorum, *first) as load:
        until_changes(quorum, load, SOME)
        quorum.has_caught_up(joining)
        add(quorum, joining, steps)
        _lead_without_one(quorum, steps, joining, lambda: until_changes(quorum, load, SOME))
        remove(quorum, joining, steps)
        until_changes(quorum, load, SOME)
        steps.step("started again with controller.quorum.auto.join.enable")
        quorum[joining].stop()
        quorum[joining].properties.update(AUTO_JOIN)
        write_properties(quorum[joining].properties_file, quorum[joining].properties)
        quorum[joining].start()
        until_voter(quorum, joining)
        steps.figure(f"node {joining} ({quorum[joining].make}) joined by itself")
        until_changes(quorum, load, SOME)
        quorum[joining].stop()
        remove(quorum, joining, steps)
        until_changes(quorum, load, SOME)
    judge(quorum, load, steps)


def new_disks(home: Path, steps: Steps) -> None:
    """A voter of each make loses its disk: the new one observes until it is given the vote."""
    makes = {1: APACHE, 2: OURS, 3: OURS}
    with MixedQuorum(home, makes, bootstrap=tuple(makes), overrides=SNAPSHOTS_OFTEN) as quorum:
        _begin(quorum, list(makes))
        with loaded(quorum) as load:
            for node_id in (1, 3):
                until_changes(quorum, load, SOME)
                lost = quorum[node_id].directory_id()
                quorum[node_id].kill()
                quorum[node_id].wipe()
                quorum[node_id].format("--no-initial-controllers")
                quorum[node_id].start()
                row(quorum, node_id, "Observer")
                make = quorum[node_id].make
                steps.step(f"node {node_id} ({make}) with a new disk observes")
                remove(quorum, node_id, steps, directory_id=lost)
                add(quorum, node_id, steps)
                until_changes(quorum, load, SOME)
        judge(quorum, load, steps)


def _begin(quorum: MixedQuorum, first: list[int]) -> None:
    """Format the first voters of a dynamic quorum, and the others to join it; start everybody."""
    initial = {each: uuid_to_text(Uuid(bytes([7, *[each] * 15]))) for each in first}
    voters = ",".join(quorum.voter_text(each, text) for each, text in initial.items())
    for node_id, node in quorum.nodes.items():
        if node_id in first:
            node.format("--initial-controllers", voters)
        else:
            node.format("--no-initial-controllers")
    quorum.start()


def add(quorum: MixedQuorum, joining: int, steps: Steps) -> None:
    """kafka-metadata-quorum add-controller, with the properties of the joining node."""
    shown = _changed(
        quorum,
        "--command-config",
        str(quorum[joining].properties_file),
        "add-controller",
    )
    until_voter(quorum, joining)
    steps.figure(f"add-controller: {' '.join(shown.split())[:60]}")


def remove(
    quorum: MixedQuorum, leaving: int, steps: Steps, directory_id: str | None = None
) -> None:
    """kafka-metadata-quorum remove-controller, of the disk that a node has if none is named."""
    shown = _changed(
        quorum,
        "remove-controller",
        "--controller-id",
        str(leaving),
        "--controller-directory-id",
        directory_id or quorum[leaving].directory_id(),
    )
    quorum.until(f"{leaving} is no voter", lambda: leaving not in voters_of(quorum))
    if quorum[leaving].answers:
        row(quorum, leaving, "Observer")
    steps.figure(f"remove-controller: {' '.join(shown.split())[:60]}")


def voters_of(quorum: MixedQuorum) -> list[int]:
    """The voters as the leader says."""
    return [each.replica_id for each in quorum.describe().current_voters]


def until_voter(quorum: MixedQuorum, node_id: int) -> None:
    """Wait until the leader counts a node among the voters."""
    quorum.until(f"{node_id} is a voter", lambda: node_id in voters_of(quorum))
    quorum.has_caught_up(node_id)


def _changed(quorum: MixedQuorum, *arguments: str) -> str:
    """Have the voters changed; again where the leader got no answer of a voter that is too busy."""
    for _ in range(CHANGE_TRIES):
        address = quorum[quorum.leader()].address
        done = run_tool("kafka-metadata-quorum", ["--bootstrap-controller", address, *arguments])
        if "BROKER_NOT_AVAILABLE" not in done.text:
            break
    assert done.exit_code == 0, done.text
    return done.stdout


def _lead_without_one(
    quorum: MixedQuorum, steps: Steps, joined: int, go_on: Callable[[], None]
) -> None:
    """Kill a first voter: the rest is a majority only with the one that joined."""
    leader = quorum.leader()
    victim = next(each for each in quorum.nodes if each not in (leader, joined))
    if leader == joined:
        victim = next(each for each in quorum.nodes if each != joined)
    quorum[victim].kill()
    go_on()
    steps.figure(f"changes go on with node {victim} dead: node {joined} counts")
    quorum[victim].start()
    quorum.has_caught_up(victim)

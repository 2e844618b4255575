"""The scripted scenarios: who starts, who is hurt, what must be seen. Each fills a folder.

Observer, voter among Apache's, leader of Apache's, in static quorums; coming and going in dynamic
ones; the same with controllers of release 3.9.1, at its metadata.version.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.apache.jars import RELEASE
from tests.mixed.controller import OURS
from tests.mixed.membership import apache_joins_ours, new_disks, ours_joins_apache
from tests.mixed.quorum import SNAPSHOTS_OFTEN, MixedQuorum
from tests.mixed.steps import (
    EAGER,
    PATIENT,
    Steps,
    first_segment,
    judge,
    loaded,
    row,
    snapshots,
    until_changes,
    until_snapshots,
)
from tests.mixed.tool_answers import tools_alike

APACHE, OLDER = RELEASE, "3.9.1"
OLDER_FORMAT = ("--release-version", "3.9")
SOME, MANY = 30, 150


def _format(quorum: MixedQuorum, *, release: str) -> None:
    """Format everybody with the tool of its make, at a level that all of them know."""
    arguments = OLDER_FORMAT if release == OLDER else ()
    for node in quorum.nodes.values():
        joins = "controller.quorum.voters" not in node.properties
        node.format(*arguments, *(("--no-initial-controllers",) if joins else ()))


def observer_of_apache(home: Path, steps: Steps, release: str = APACHE) -> None:
    """Ours, in no voter set, follows three Apache voters."""
    makes = {1: release, 2: release, 3: release, 4: OURS}
    with MixedQuorum(home, makes, voters=(1, 2, 3)) as quorum:
        _format(quorum, release=release)
        quorum.start()
        steps.step(f"three voters of Apache {release}; node {quorum.leader()} leads, ours is 4")
        with loaded(quorum, 1, 2, 3) as load:
            until_changes(quorum, load, SOME)
            steps.step(f"{load.changes} changes acknowledged meanwhile")
        shown = row(quorum, 4, "Observer", lag="0")
        steps.figure(f"kafka-metadata-quorum: node 4 is {shown[-1]}, lag {shown[3]}")
        judge(quorum, load, steps)


def voter_among_apache(home: Path, steps: Steps, release: str = APACHE) -> None:
    """Ours votes an Apache controller in, loses its disk and comes back through a snapshot."""
    makes = {1: release, 2: release, 3: OURS}
    own = {3: PATIENT if release == OLDER else EAGER}  # 3.9.1 stands without asking first
    with MixedQuorum(
        home, makes, voters=tuple(makes), overrides=SNAPSHOTS_OFTEN, own=own
    ) as quorum:
        _format(quorum, release=release)
        quorum.start()
        with loaded(quorum) as load:
            until_changes(quorum, load, SOME)
            while not _elects_apache(quorum, steps):
                steps.step("ours was faster and leads: once more")
            until_changes(quorum, load, SOME)
            quorum.make_lead(1, 2)
            _lose_the_disk(quorum, steps, 3, lambda: until_changes(quorum, load, MANY))
        judge(quorum, load, steps)


def _elects_apache(quorum: MixedQuorum, steps: Steps) -> bool:
    """Kill the leader, an Apache one; tell whether our vote made the other Apache one follow it."""
    first = quorum.make_lead(1, 2)
    for node_id in quorum.nodes:
        quorum.has_caught_up(node_id)
    steps.step(f"node {first} leads; kill -9 of it")
    quorum[first].kill()
    began = time.monotonic()
    second = quorum.leader(among=set(quorum.nodes) - {first})
    seconds = time.monotonic() - began
    quorum[first].start()
    quorum.has_caught_up(first)
    if second == 3:
        return False
    steps.figure(f"after kill -9 of node {first} our vote elected node {second} in {seconds:.1f} s")
    return True


def leader_of_apache(home: Path, steps: Steps) -> None:
    """Ours leads two Apache voters, one of which loses its disk."""
    makes = {1: OURS, 2: APACHE, 3: APACHE}
    own = {2: PATIENT, 3: PATIENT}
    overrides = SNAPSHOTS_OFTEN
    with MixedQuorum(home, makes, voters=tuple(makes), overrides=overrides, own=own) as quorum:
        _format(quorum, release=APACHE)
        quorum.start()
        quorum.make_lead(1)
        with loaded(quorum) as load:
            until_changes(quorum, load, SOME)
            for node_id in (2, 3):
                shown = row_of_follower(quorum, node_id)
                steps.figure(f"ours leads; node {node_id} of Apache is {shown}")
            _lose_the_disk(quorum, steps, 2, lambda: until_changes(quorum, load, MANY))
            steps.step("kill -9 of ours, which starts again")
            quorum[1].kill()
            quorum[1].start()
            began = time.monotonic()
            leader = quorum.leader()
            steps.figure(f"node {leader} leads {time.monotonic() - began:.1f} s later")
            quorum.make_lead(1)
            until_changes(quorum, load, SOME)
        judge(quorum, load, steps)


def row_of_follower(quorum: MixedQuorum, node_id: int) -> str:
    """Wait until the tool shows a follower, whatever little is under way to it."""
    quorum.has_caught_up(node_id)
    shown = quorum.tool("kafka-metadata-quorum", "describe", "--replication").stdout
    rows = [line.split() for line in shown.splitlines()[1:]]
    (found,) = [each for each in rows if each and each[0] == str(node_id)]
    assert found[-1] == "Follower", shown
    return f"{found[-1]}, lag {found[3]}"


def _lose_the_disk(
    quorum: MixedQuorum, steps: Steps, node_id: int, load_changes: Callable[[], None]
) -> None:
    """Kill and wipe a voter and format it anew: the leader sends it a snapshot, then its log."""
    load_changes()
    leader = quorum.leader()
    until_snapshots(quorum, leader, 2)
    steps.step(f"kill -9 of node {node_id} and its disk lost; node {leader} leads")
    quorum[node_id].kill()
    quorum[node_id].wipe()
    is_old = any(node.make == OLDER for node in quorum.nodes.values())
    quorum[node_id].format(*(OLDER_FORMAT if is_old else ()))
    _start_and_fetch_a_snapshot(quorum, steps, node_id)


def _start_and_fetch_a_snapshot(quorum: MixedQuorum, steps: Steps, node_id: int) -> None:
    """Start a node for which the leader has a snapshot only: its log begins behind that."""
    leader = quorum.leader()
    sent = snapshots(quorum, leader)
    quorum[node_id].start()
    began = time.monotonic()
    quorum.has_caught_up(node_id)
    start = first_segment(quorum, node_id)
    assert start > 0, f"node {node_id} fetched the log from its beginning"
    fetched = snapshots(quorum, node_id)
    (name,) = [each for each in fetched if int(each.split("-")[0]) == start]
    source = {**sent, **snapshots(quorum, leader)}
    assert fetched[name] == source[name], name
    steps.figure(
        f"node {node_id} caught up {time.monotonic() - began:.1f} s after its start by "
        f"FetchSnapshot of {name} ({len(fetched[name])} bytes, equal at both)"
    )


def left_behind(home: Path, steps: Steps) -> None:
    """An observer of each make is away until the leader of the other make has cleaned its log."""
    makes = {1: APACHE, 2: OURS, 3: APACHE, 4: OURS, 5: OURS}
    with MixedQuorum(home, makes, voters=(1, 2, 5), overrides=SNAPSHOTS_OFTEN) as quorum:
        _format(quorum, release=APACHE)
        quorum.start()
        with loaded(quorum, 1, 2, 5) as load:
            until_changes(quorum, load, MANY)
            for node_id in (3, 4):
                quorum.has_caught_up(node_id)
                quorum[node_id].kill()
            steps.step("voters 1 (Apache), 2, 5 (ours); observers 3 (Apache) and 4 (ours) killed")
            for node_id in (1, 2):
                until_snapshots(quorum, node_id, 2)
            old = {node_id: set(snapshots(quorum, node_id)) for node_id in (1, 2)}
            for node_id in (1, 2):
                quorum.until(
                    f"node {node_id} cleans its log",
                    lambda each=node_id: not old[each] & set(snapshots(quorum, each)),  # type: ignore[misc]  # bound now
                )
                steps.step(f"the log of node {node_id} begins where the observers' do not end")
            for leader, node_id in ((1, 4), (2, 3)):
                quorum.make_lead(leader)
                steps.step(f"node {leader} ({makes[leader]}) leads; {node_id} starts")
                _start_and_fetch_a_snapshot(quorum, steps, node_id)
        judge(quorum, load, steps)


SCENARIOS: dict[str, Callable[[Path, Steps], None]] = {
    "observer": observer_of_apache,
    "voter": voter_among_apache,
    "leader": leader_of_apache,
    "left-behind": left_behind,
    "join-apache": ours_joins_apache,
    "join-ours": apache_joins_ours,
    "new-disks": new_disks,
    "observer-3.9.1": partial(observer_of_apache, release=OLDER),
    "voter-3.9.1": partial(voter_among_apache, release=OLDER),
    "tools": tools_alike,
}

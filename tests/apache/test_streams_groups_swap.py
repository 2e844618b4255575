"""Streams groups survive a change of the broker: from Apache's to ours, and the reverse.

Members that are in the midst of a reconciliation go on with the next broker as they would have gone
on with the first: every answer is that of two lives of Apache's node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.streams_group_heartbeat import Endpoint
from tests.apache.node import ApacheNode
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import Member, described, internal, subtopology, topology
from tests.apache.streams_records import Row, streams_records
from tests.apache.streams_story import SETTINGS
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.java, pytest.mark.slow]

SOURCE, CHANGELOG = "swapped", "swapped-changelog"
GROUPS = ("moving", "stable", "empty", "waiting", "deleted")
BOTH = {"offsets.topic.num.partitions": "4", "num.partitions": "4", **SETTINGS}
Life = dict[str, Member]
Steps = list[tuple[str, Any]]


def wanted(*changelogs: str) -> Any:
    return topology(
        subtopology("0", [SOURCE], changelogs=[internal(each) for each in changelogs]), epoch=2
    )


def first_life(node: BrokerConnection, cluster: Cluster) -> Iterator[tuple[str, Member]]:
    """Leave groups in all states behind; yield their members."""
    for topic in (SOURCE, CHANGELOG):
        cluster.topic(topic, 4)
    for group in GROUPS[:3]:
        cluster.sets(group, "streams.num.standby.replicas", "1")
        for name in ("one", "two"):
            place = Endpoint(host=f"{name}.example", port=1)
            member = Member(node, group, name, user_endpoint=place, rack_id="rack")
            member.joins(wanted(CHANGELOG))
            yield f"{group} {name}", member
    waiting = Member(node, "waiting", "one")
    waiting.joins(topology(subtopology("0", ["that-is-missing"])))
    yield "waiting one", waiting
    deleted = Member(node, "deleted", "one")
    deleted.joins(wanted())
    deleted.leaves()
    cluster.deletes("deleted")


def settles(members: Sequence[Member], rounds: int = 3) -> None:
    for _ in range(rounds):
        for each in members:
            each.owns(each.active, each.standby)


def second_life(node: BrokerConnection, cluster: Cluster, members: Life) -> Iterator[Any]:
    """Go on; nothing has been lost."""
    yield "described", [described(node, each) for each in GROUPS if each != "stable"]
    state = described(node, "stable")["groups"][0]
    yield "stable", (state["groupState"], state["groupEpoch"], state["assignmentEpoch"])
    for member in members.values():
        member.moves_to(node)
    one, two = members["moving one"], members["moving two"]
    yield "an epoch that was", one.beats(member_epoch=1)
    yield "still has all", one.owns({"0": [0, 1, 2, 3]})
    yield "waits", two.beats()
    yield "is told", one.beats()
    yield "has revoked", one.owns({"0": [0, 1]}, one.standby)
    yield "gets tasks", two.owns(two.active, two.standby)
    yield "described when moved", described(node, "moving")
    for name in ("stable one", "stable two"):
        yield name, members[name].beats()
    yield "joins an empty group", members["empty one"].joins(wanted(CHANGELOG))
    yield "joins with the topology of another epoch", members["empty two"].joins(wanted())
    cluster.topic("that-is-missing", 1)
    cluster.keeps_until(members["waiting one"], lambda: not members["waiting one"].last.status)
    yield "has its topic", members["waiting one"].active
    yield "a deleted group", described(node, "deleted")
    yield "a deleted group, begun again", Member(node, "deleted", "one").joins(wanted())


def lives(directory: Path, first: str, second: str) -> tuple[Steps, dict[str, list[Row]]]:
    """Run a node of each make over one directory; return the second's answers, and all records."""
    directory.mkdir()
    members: Life = {}
    with started(directory, first) as node, closing(BrokerConnection(node.bootstrap)) as connection:
        cluster = Cluster(connection)
        cluster.await_coordinators()
        members.update(first_life(connection, cluster))
        settles([members["stable one"], members["stable two"]])
        for name in ("empty one", "empty two"):
            members[name].leaves()
    with (
        started(directory, second) as node,
        closing(BrokerConnection(node.bootstrap)) as connection,
    ):
        cluster = Cluster(connection)
        cluster.await_coordinators()
        steps = list(second_life(connection, cluster, members))
    return steps, streams_records(directory / "data")


def started(directory: Path, make: str) -> Any:
    """Return a node over what another has left, or over nothing."""
    if make == "ours":
        return ServerProcess(directory, overrides=BOTH)
    return ApacheNode(directory, overrides=BOTH) if is_new(directory) else Over(directory)


def is_new(directory: Path) -> bool:
    return not (directory / "data").exists()


class Over(ApacheNode):
    """Apache's node over data that it does not format."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, overrides=BOTH)

    def format(self) -> None:
        self.configure()


@pytest.fixture(scope="module")
def twice_apache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return lives(tmp_path_factory.mktemp("lives") / "apache", "apache", "apache")


@pytest.mark.parametrize(
    ("first", "second"), [("ours", "apache"), ("apache", "ours"), ("ours", "ours")]
)
def test_members_go_on_with_the_next_broker(
    twice_apache: Any, tmp_path: Path, first: str, second: str
) -> None:
    steps, records = lives(tmp_path / "data-of-both", first, second)
    wanted_steps, wanted_records = twice_apache
    assert dict(steps) == dict(wanted_steps)
    assert records == wanted_records

"""Stories about streams groups (KIP-1071), told to a node: requests and what it answers.

Each story has groups of its name and topics of its own; a step is its name and the answer. The node
has `SETTINGS`: it assigns at once, unless a story sets it otherwise for a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kraft_wire.client import BrokerConnection
from kraft_wire.wire.generated.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset
from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import (
    Member,
    described,
    internal,
    shown,
    subtopology,
    tasks,
    topology,
)

__all__ = ["CHAPTERS", "SETTINGS", "Step"]

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.min.heartbeat.interval.ms": "100",
}
Step = tuple[str, Any]
Chapter = Callable[[BrokerConnection, Cluster], Iterator[Step]]


def refusals(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Every fault of a request, alone and beside those that are looked for later."""
    cluster.topic("refusals", 2)
    plain = topology(subtopology(sources=["refusals"]))
    partitioned = topology(subtopology(changelogs=[internal("changelog", partitions=1)]))
    by_name = subtopology(sources=["refusals"])
    by_name.source_topic_regex = ["re.*"]
    offsets = [TaskOffset(subtopology_id="0", partition=0, offset=1)]
    one = Member(node, "refusals", "one")
    nobody = Member(node, "", "", instance_id="instance")
    yield "static, no member id, no group", nobody.joins(plain)
    yield (
        "task offsets, no member id",
        Member(node, "refusals", "").joins(plain, task_offsets=offsets),
    )
    yield "task end offsets", one.joins(plain, task_end_offsets=offsets)
    yield "warmup tasks", one.joins(plain, warmup_tasks=tasks({"0": [0]}))
    yield "source topics by name", one.joins(topology(by_name))
    yield "no member id, no group", Member(node, "", "").joins(plain)
    yield "no group", Member(node, "", "one").joins(plain)
    yield "empty instance", one.joins(plain, instance_id="")
    yield "empty rack", one.joins(plain, rack_id="")
    yield "no rebalance timeout", one.joins(plain, rebalance_timeout_ms=-1)
    yield "joins with active tasks", one.joins(plain, active_tasks=tasks({"0": [0]}))
    yield "joins with standby tasks", one.joins(plain, standby_tasks=tasks({"0": [0]}))
    yield "joins without active tasks", one.joins(plain, active_tasks=None)
    yield "joins without standby tasks", one.joins(plain, standby_tasks=None)
    yield "joins without warmup tasks", one.joins(plain, warmup_tasks=None)
    yield "joins without topology", one.sends(rebalance_timeout_ms=1, active_tasks=[])
    yield "changelog with partitions", one.joins(partitioned)
    yield "epoch -3", one.beats(member_epoch=-3)
    yield "epoch -2", one.beats(member_epoch=-2)
    yield "topology later", one.beats(member_epoch=1, topology=plain)
    yield "active tasks alone", one.beats(member_epoch=1, active_tasks=[])
    yield "unknown group", one.beats(member_epoch=1)
    yield "unknown group, leaves", one.leaves()
    yield "joins", one.joins(plain)
    yield "unknown member", Member(node, "refusals", "two").beats(member_epoch=1)
    yield "unknown member leaves", Member(node, "refusals", "two").leaves()
    yield "unknown subtopology", one.owns({"7": [0]})
    yield "unknown task", one.owns({"0": [2]})
    yield "negative task", one.owns({"0": [-1]})
    yield "unknown standby task", one.owns({}, {"0": [2]})
    yield "greater epoch", one.beats(member_epoch=one.epoch + 1)
    yield "smaller epoch", one.beats(member_epoch=1)
    yield "nothing has changed", described(node, "refusals")


def topologies(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Topologies that cannot work (yet), and those of other members."""
    cluster.topic("two", 2)
    cluster.topic("three", 3)
    empty = Member(node, "empty-topology", "one")
    yield "no subtopology", empty.joins(topology())
    yield "no subtopology, described", described(node, "empty-topology")
    lost = Member(node, "missing-sources", "one")
    yield "missing sources", lost.joins(topology(subtopology(sources=["b-lost", "a-lost"])))
    yield "missing sources, described", described(node, "missing-sources")
    yield "missing sources, again", lost.beats()
    odd = topology(subtopology(sources=["two", "three"], copartitioned=True))
    yield "copartitioned", Member(node, "copartitioned", "one").joins(odd)
    alone = topology(subtopology(sources=["two", "three"]))
    yield "not copartitioned", Member(node, "not-copartitioned", "one").joins(alone)
    fixed = internal("fixed-repartition", partitions=3)
    yield (
        "copartitioned with a fixed repartition topic",
        Member(node, "fixed", "one").joins(
            topology(
                subtopology("0", ["two"], sinks=["fixed-repartition"]),
                subtopology("1", ["two"], repartitions=[fixed], copartitioned=True),
            )
        ),
    )
    endless = internal("endless-repartition")
    yield (
        "a repartition topic that nobody writes",
        Member(node, "endless", "one").joins(topology(subtopology(repartitions=[endless]))),
    )
    yield (
        "a reserved name",
        Member(node, "reserved", "one").joins(
            topology(subtopology(sources=["two"], changelogs=[internal("__consumer_offsets")]))
        ),
    )
    yield (
        "an impossible name",
        Member(node, "impossible", "one").joins(
            topology(subtopology(sources=["two"], changelogs=[internal("a/b")]))
        ),
    )
    one, two = Member(node, "epochs", "one"), Member(node, "epochs", "two")
    yield "topology epoch 3", one.joins(topology(subtopology(sources=["two"]), epoch=3))
    yield "older", two.joins(topology(subtopology(sources=["three"]), epoch=2))
    yield "newer", two.joins(topology(subtopology(sources=["three"]), epoch=4))
    yield "same epoch, another", two.joins(topology(subtopology(sources=["three"]), epoch=3))
    yield "same", two.joins(topology(subtopology(sources=["two"]), epoch=3))
    yield "described", described(node, "epochs")


def assignment(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Members of the same and of other processes: what they get, give up, and leave."""
    cluster.topic("assignment", 4)
    plain = topology(subtopology(sources=["assignment"]))
    group = "assignment"
    one, two = Member(node, group, "one"), Member(node, group, "two")
    thread = Member(node, group, "thread", process="process of one")
    yield "first joins", one.joins(plain)
    yield "owns all", one.owns({"0": [0, 1, 2, 3]})
    yield "second joins", two.joins(plain)
    yield "described while tasks are revoked", described(node, group)
    yield "first is told", one.beats()
    yield "first still owns all", one.owns({"0": [0, 1, 2, 3]})
    yield "second waits", two.beats()
    yield "described meanwhile", described(node, group)
    yield "first has revoked", one.owns({"0": list(_active(one))})
    yield "second gets tasks", two.beats()
    yield "second owns", two.owns({"0": list(_active(two))})
    yield "described when stable", described(node, group)
    yield "a thread joins", thread.joins(plain)
    yield "first again", one.beats()
    yield "second again", two.beats()
    yield "first revokes", one.owns({"0": list(_active(one))})
    yield "second revokes", two.owns({"0": list(_active(two))})
    yield "the thread", thread.beats()
    yield "described with a thread", described(node, group)
    yield "previous epoch, no tasks told", one.beats(member_epoch=one.epoch - 1)
    yield (
        "previous epoch, fewer tasks",
        one.beats(member_epoch=one.epoch - 1, active_tasks=[], standby_tasks=[], warmup_tasks=[]),
    )
    yield "an epoch before", one.beats(member_epoch=1, active_tasks=[], standby_tasks=[])
    yield "joins again", two.joins(plain)
    yield "joins again in another process", two.joins(plain, process_id="another")
    yield "the thread leaves", thread.leaves()
    yield "the thread is unknown", thread.beats(member_epoch=3)
    yield "described after it left", described(node, group)
    yield "first after it left", one.beats()
    yield "second leaves", two.leaves()
    yield "first at last", one.beats()
    yield "first leaves", one.leaves()
    yield "described when empty", described(node, group)
    yield "a new first", one.joins(plain)
    yield "listed", cluster.listed(group)
    yield "deletion of a group with members", cluster.deletes(group)
    yield "leaves for good", one.leaves()
    yield "listed when empty", cluster.listed(group)
    yield "deletion", cluster.deletes(group)
    yield "deletion again", cluster.deletes(group)
    yield "described when deleted", described(node, group)


def _active(member: Member) -> tuple[int, ...]:
    """The active tasks of a member's last assignment, of the only subtopology."""
    return member.active.get("0", ())


def internal_topics(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """A node creates what a topology needs, with its partitions and configs."""
    cluster.topic("orders", 3)
    cluster.topic("customers", 2)
    group = "internal-topics"
    repartition = internal("app-by-key-repartition", cleanup_policy="delete")
    fixed = internal("app-fixed-repartition", 5, 1, retention_ms="-1")
    counts = internal("app-counts-changelog", replication=1, cleanup_policy="compact")
    raw = internal("app-raw-changelog")
    needed = topology(
        subtopology(
            "0", ["orders", "customers"], sinks=[repartition.name, fixed.name], changelogs=[raw]
        ),
        subtopology("1", repartitions=[repartition], changelogs=[counts], copartitioned=True),
        subtopology("2", repartitions=[fixed]),
    )
    one = Member(node, group, "one")
    yield "joins", one.joins(needed)
    names = [each.name for each in (repartition, fixed, counts, raw)]
    yield "topics", cluster.made(names)
    yield "described before", described(node, group)
    yield "when all topics are there", cluster.settled(one)
    yield "described", described(node, group)
    small = internal("app-small-changelog")
    cluster.topic(small.name, 1)
    yield (
        "an internal topic of another size",
        Member(node, "small", "one").joins(
            topology(subtopology("0", ["orders"], changelogs=[small]))
        ),
    )


def standby_tasks(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Standby tasks by a setting of the group, in other processes than the active ones."""
    cluster.topic("stateful", 2)
    cluster.topic("stateful-changelog", 2)
    group = "standby"
    changelog = internal("stateful-changelog")
    stateful = topology(subtopology("0", ["stateful"], changelogs=[changelog]))
    yield (
        "more standby tasks than allowed",
        cluster.sets(group, "streams.num.standby.replicas", "3"),
    )
    yield "one standby task", cluster.sets(group, "streams.num.standby.replicas", "1")
    one, two = Member(node, group, "one"), Member(node, group, "two")
    thread = Member(node, group, "thread", process="process of one")
    yield "joins alone", one.joins(stateful)
    yield "owns", one.owns({"0": [0, 1]})
    yield "a thread joins", thread.joins(stateful)
    yield "another process joins", two.joins(stateful)
    for number in range(4):
        yield f"first, {number}", one.owns(one.active, one.standby)
        yield f"second, {number}", two.owns(two.active, two.standby)
        yield f"thread, {number}", thread.owns(thread.active, thread.standby)
    yield "described", described(node, group)
    yield "none any more", cluster.sets(group, "streams.num.standby.replicas", "0")
    yield "first without", one.beats()
    yield "second without", two.beats()
    yield "thread without", thread.beats()
    yield "described without", described(node, group)


def endpoints(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """What members tell about where they are, and which other members learn it."""
    cluster.topic("places", 2)
    plain = topology(subtopology(sources=["places"]))
    group = "endpoints"
    tags = [KeyValue(key="zone", value="b"), KeyValue(key="cluster", value="a")]
    one = Member(
        node,
        group,
        "one",
        user_endpoint=Endpoint(host="one.example", port=8080),
        rack_id="rack-1",
        client_tags=tags,
    )
    two = Member(node, group, "two", user_endpoint=Endpoint(host="two.example", port=65535))
    yield "joins", one.joins(plain)
    yield "epoch 0", one.beats(endpoint_information_epoch=0)
    yield "epoch 1", one.beats(endpoint_information_epoch=1)
    yield "epoch 2", one.beats(endpoint_information_epoch=2)
    yield "another joins", two.joins(plain, endpoint_information_epoch=-1)
    yield "first", one.beats(endpoint_information_epoch=1)
    yield "first revokes", one.owns(one.active)
    yield "second", two.beats(endpoint_information_epoch=1)
    yield "second knows", two.beats(endpoint_information_epoch=two.last.endpoint_information_epoch)
    yield "described", described(node, group)
    yield "moved", one.beats(user_endpoint=Endpoint(host="elsewhere", port=1))
    yield "other tags", one.beats(client_tags=[])
    yield "other rack", one.beats(rack_id="rack-2")
    yield "other timeout", one.beats(rebalance_timeout_ms=5)
    yield "described after the move", described(node, group)


def shutdown(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """One member asks all to shut down."""
    cluster.topic("shutdown", 2)
    plain = topology(subtopology(sources=["shutdown"]))
    one, two = Member(node, "shutdown", "one"), Member(node, "shutdown", "two")
    yield "joins", one.joins(plain)
    yield "another joins", two.joins(plain)
    yield "asks", one.beats(shutdown_application=True)
    yield "other learns", two.beats()
    yield "other asks as well", two.beats(shutdown_application=True)
    yield "leaves", one.leaves()
    yield "other after that", two.beats()
    yield "all left", two.leaves()
    yield "a new first", one.joins(plain)
    yield "asks when it leaves", one.beats(member_epoch=-1, shutdown_application=True)
    yield "next", two.joins(plain)


def delays(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """A group whose first assignment waits, and one whose assignments are an interval apart."""
    cluster.topic("delays", 2)
    plain = topology(subtopology(sources=["delays"]))
    yield "long delay", cluster.sets("delayed", "streams.initial.rebalance.delay.ms", "900000")
    one, two = Member(node, "delayed", "one"), Member(node, "delayed", "two")
    yield "joins", one.joins(plain)
    yield "another joins", two.joins(plain)
    yield "waits", one.beats()
    yield "described", described(node, "delayed")
    yield "interval", cluster.sets("rare", "streams.assignment.interval.ms", "15000")
    one, two = Member(node, "rare", "one"), Member(node, "rare", "two")
    yield "first of an interval", one.joins(plain)
    yield "second within the interval", two.joins(plain)
    yield "first within the interval", one.beats()
    yield "described within the interval", described(node, "rare")
    yield "heartbeats", cluster.sets("rare", "streams.heartbeat.interval.ms", "7000")
    yield "session", cluster.sets("rare", "streams.session.timeout.ms", "50000")
    yield "session too short", cluster.sets("rare", "streams.session.timeout.ms", "100")
    yield "first at another interval", one.beats()


def offsets(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Offsets are committed by the epoch of a member."""
    cluster.topic("committed", 2)
    group = "offsets"
    one = Member(node, group, "one")
    yield "a commit before there is a group", cluster.commits(group, "committed", "", -1)
    yield "joins a group of offsets", one.joins(topology(subtopology(sources=["committed"])))
    yield "by its epoch", cluster.commits(group, "committed", "one", one.epoch)
    yield "by a greater epoch", cluster.commits(group, "committed", "one", one.epoch + 1)
    yield "by a smaller epoch", cluster.commits(group, "committed", "one", one.epoch - 1)
    yield "by an old version", cluster.commits(group, "committed", "one", one.epoch - 1, version=8)
    yield "by a stranger", cluster.commits(group, "committed", "two", one.epoch)
    yield "by nobody", cluster.commits(group, "committed", "", -1)
    yield "fetched", cluster.fetches(group, "committed", "one", one.epoch)
    yield "fetched by a greater epoch", cluster.fetches(group, "committed", "one", one.epoch + 1)
    yield "fetched by a stranger", cluster.fetches(group, "committed", "two", one.epoch)
    yield "fetched by nobody", cluster.fetches(group, "committed", None, -1)
    yield "deleted with a member", cluster.deletes_offsets(group, "committed")
    yield (
        "another joins",
        Member(node, group, "two").joins(topology(subtopology(sources=["committed"]))),
    )
    yield "by the epoch before", cluster.commits(group, "committed", "one", one.epoch)
    yield "first leaves", one.leaves()
    yield "second leaves", Member(node, group, "two").leaves()
    yield "by nobody, of an empty group", cluster.commits(group, "committed", "", -1)
    yield "by a member that left", cluster.commits(group, "committed", "one", one.epoch)
    yield "deleted", cluster.deletes_offsets(group, "committed")
    yield "group deleted", cluster.deletes(group)


def kinds(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Groups of other kinds, and descriptions in their order."""
    cluster.topic("kinds", 1)
    plain = topology(subtopology(sources=["kinds"]))
    one = Member(node, "kinds", "one")
    yield "joins", one.joins(plain)
    for kind in ("consumer", "share", "classic"):
        yield f"{kind} member in a streams group", cluster.joins_as(kind, "kinds", "kinds")
        yield f"{kind} group", cluster.joins_as(kind, f"kind-{kind}", "kinds")
        yield f"streams member in a {kind} group", Member(node, f"kind-{kind}", "one").joins(plain)
        yield (
            f"streams epoch in a {kind} group",
            Member(node, f"kind-{kind}", "one").beats(member_epoch=3),
        )
    yield (
        "described",
        described(
            node,
            "kinds",
            "kind-consumer",
            "",
            "kind-share",
            "nobody",
            "kind-classic",
            operations=True,
        ),
    )
    yield "described twice", described(node, "kinds", "kinds")
    yield "described as others", cluster.described_as_others("kinds")
    yield "leaves", one.leaves()
    for kind in ("share", "consumer", "classic"):
        yield f"{kind} member in an empty streams group", cluster.joins_as(kind, "kinds", "kinds")
        if kind == "consumer":
            yield "the group is another", described(node, "kinds")


def removals(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """Members that are silent, or keep what they are told to give up, are removed."""
    cluster.topic("removals", 2)
    plain = topology(subtopology(sources=["removals"]))
    group = "silent"
    yield "heartbeats", cluster.sets(group, "streams.heartbeat.interval.ms", "200")
    yield "session", cluster.sets(group, "streams.session.timeout.ms", "1500")
    one, two = Member(node, group, "one"), Member(node, group, "two")
    yield "joins", one.joins(plain)
    yield "another joins", two.joins(plain)
    yield "first revokes", (one.beats(), one.owns(one.active))
    yield "another gets its task", two.beats()
    cluster.keeps_until(one, lambda: one.active == {"0": (0, 1)})
    yield "first gets all", shown(one.last)
    yield "described without the silent one", described(node, group)
    yield "the silent one", two.beats()
    yield "first leaves before it is silent", one.leaves()
    group = "slow"
    one, two = Member(node, group, "one"), Member(node, group, "two")
    yield "joins with little time", one.joins(plain, rebalance_timeout_ms=700)
    yield "another joins the slow one", two.joins(plain)
    yield "the slow one is told", one.beats()
    cluster.keeps_until(one, lambda: one.last.error_code != 0)
    yield "the slow one", shown(one.last)
    yield "described without the slow one", described(node, group)
    yield "another gets all", two.beats()


def topic_changes(node: BrokerConnection, cluster: Cluster) -> Iterator[Step]:
    """A source topic gets partitions, is deleted, and comes again."""
    cluster.topic("changing", 1)
    one = Member(node, "topic-changes", "one")
    yield "joins", one.joins(topology(subtopology(sources=["changing"])))
    before = one.epoch
    cluster.grows("changing", 3)
    cluster.keeps_until(one, lambda: one.epoch != before)
    yield "more partitions", shown(one.last)
    cluster.removes("changing")
    cluster.keeps_until(one, lambda: bool(one.last.status))
    yield "deleted", shown(one.last)
    yield "after that", one.owns(one.active)
    yield "described without its topic", described(node, "topic-changes")
    cluster.topic("changing", 2)
    cluster.keeps_until(one, lambda: not one.last.status)
    yield "made again", shown(one.last)
    yield "described", described(node, "topic-changes")


CHAPTERS: tuple[Chapter, ...] = (
    refusals,
    topologies,
    assignment,
    internal_topics,
    standby_tasks,
    endpoints,
    shutdown,
    delays,
    offsets,
    kinds,
    removals,
    topic_changes,
)

"""A story about the rights that members of streams groups need (KIP-1071), told to a node.

The node has an authorizer; `ann` begins without any right, and gets one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

from tests.apache.streams_cluster import Cluster
from tests.apache.streams_members import Member, described, internal, subtopology, topology
from tests.apache.token_story import Asker
from tests.process import accepts
from tests.waiting import until

__all__ = ["story"]

READ, CREATE, DESCRIBE = 3, 5, 8
TOPIC, GROUP = 2, 3
NAME: Final = "rights"
SOURCE, CHANGELOG = "source-of-rights", "changelog-of-rights"


def story(secure: str) -> Iterator[tuple[str, Any]]:
    """Tell the story to a node; yield the name and the answer of each step."""
    until(lambda: accepts(int(secure.rpartition(":")[2])), lambda: "no listener")
    with ExitStack() as opened:
        ann, bob, root = (Asker(secure, each) for each in ("ann", "bob", "broker"))
        for each in (ann, bob, root):
            opened.enter_context(each.connection)
        yield from _of_members(ann, root)
        yield from _of_descriptions(bob, root)


def _of_members(ann: Asker, root: Asker) -> Iterator[tuple[str, Any]]:
    cluster = Cluster(root.connection)
    cluster.await_coordinators()
    cluster.topic(SOURCE, 2)
    cluster.assigns_at_once(NAME)
    wanted = topology(subtopology("0", [SOURCE], changelogs=[internal(CHANGELOG)]))
    member = Member(ann.connection, NAME, "one")

    def grants(operation: int, resource: int, name: str, holds: Callable[[], bool]) -> None:
        root.grants("User:ann", operation, resource, name)
        until(holds, lambda: member.last)

    def joins() -> int:
        member.joins(wanted)
        return member.last.error_code

    yield "no right", member.joins(wanted)
    yield "no right, and a request that is wrong", member.joins(wanted, rebalance_timeout_ms=-1)
    refused = joins()
    grants(READ, GROUP, NAME, lambda: joins() != refused)
    yield "may read the group", member.joins(wanted)
    yield "may read the group, and a wrong request", member.joins(wanted, rebalance_timeout_ms=-1)
    grants(DESCRIBE, TOPIC, SOURCE, lambda: True)
    until(lambda: described_topic(ann, SOURCE), lambda: "the right")
    yield "may describe the source", member.joins(wanted)
    grants(DESCRIBE, TOPIC, CHANGELOG, lambda: joins() == 0)
    yield "may describe all topics", member.joins(wanted)
    yield "nothing is made", cluster.is_there(CHANGELOG)
    yield "later heartbeats need no topics", member.beats()
    grants(CREATE, TOPIC, CHANGELOG, lambda: (member.beats(), cluster.is_there(CHANGELOG))[1])
    yield "may create the changelog", cluster.made([CHANGELOG])
    cluster.keeps_until(member, lambda: not member.last.status)
    yield "has tasks", member.active
    yield "described with the right to read", code(ann)


def _of_descriptions(bob: Asker, root: Asker) -> Iterator[tuple[str, Any]]:
    yield "described without a right", described(bob.connection, NAME)
    yield "described beside others", described(bob.connection, "nobody", "", NAME)
    for resource, name in ((GROUP, NAME), (TOPIC, SOURCE), (TOPIC, CHANGELOG)):
        root.grants("User:bob", DESCRIBE, resource, name)
        wanted = {NAME: 29, SOURCE: 29, CHANGELOG: 0}[name]
        until(lambda wanted=wanted: code(bob) == wanted, lambda: code(bob))
        if resource == TOPIC:
            until(lambda name=name: described_topic(bob, name), lambda: "the right")
        yield f"described with a right on {name}", described(bob.connection, NAME)


def code(who: Asker) -> int:
    """Return the error of a description."""
    answer: int = described(who.connection, NAME)["groups"][0]["errorCode"]
    return answer


def described_topic(who: Asker, topic: str) -> bool:
    """Whether a user may describe a topic."""
    return Cluster(who.connection).is_there(topic)

"""OffsetCommit 2 to 10, OffsetFetch 1 to 10 and OffsetDelete 0, of members and of nobody."""

import time
from typing import Any

from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.apache.differential.group_probes import member_of, wrong_identities
from tests.apache.differential.probes import probe
from tests.apache.differential.side import STRANGER, Side
from tests.waiting import HANG_S

SECONDS_MAX = HANG_S
FIRST_ID_VERSION = 10
FIRST_STATIC_VERSION = 7
FIRST_SEVERAL_GROUPS = 8
NOBODY: dict[str, Any] = {"member_id": "", "generation_id_or_member_epoch": -1}


def offset(
    side: Side, version: int, name: str, index: int = 0, value: int = 7, **more: Any
) -> OffsetCommitRequestTopic:
    """One partition's offset, its topic by name or, from version 10 on, by id."""
    part = OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=value,
        committed_metadata=more.pop("metadata", "note"),
        **more,
    )
    if version < FIRST_ID_VERSION:
        return OffsetCommitRequestTopic(name=name, partitions=[part])
    topic_id = side.topic_id(name) if side.has(name) else STRANGER
    return OffsetCommitRequestTopic(topic_id=topic_id, partitions=[part])


@probe(OffsetCommitRequest)
def commits_of_nobody(side: Side, version: int) -> None:
    name, group = side.topic("committed", 3), side.group(f"commit-{version}")
    nowhere = side.name("nowhere")

    def ask(question: str, *topics: OffsetCommitRequestTopic, **more: Any) -> None:
        fields = {"group_id": group} | NOBODY | more
        side.ask(OffsetCommitRequest(topics=list(topics), **fields), version, question)

    ask("one", offset(side, version, name))
    ask("unknown partition", offset(side, version, name, 9))
    ask("negative partition", offset(side, version, name, -1))
    ask("unknown topic", offset(side, version, nowhere))
    ask("known and unknown", offset(side, version, name), offset(side, version, nowhere))
    ask("no metadata", offset(side, version, name, 1, metadata=None))
    ask("longest metadata", offset(side, version, name, 1, metadata="x" * 4_096))
    ask("metadata too long", offset(side, version, name, 1, metadata="x" * 4_097))
    ask("negative offset", offset(side, version, name, 2, value=-1))
    ask("very negative offset", offset(side, version, name, 2, value=-9))
    ask("no group", offset(side, version, name), group_id="")
    ask("nothing")
    ask("a generation", offset(side, version, name), generation_id_or_member_epoch=3)
    ask("a member", offset(side, version, name), member_id="stranger")
    stranger = {"member_id": "stranger", "generation_id_or_member_epoch": 3}
    ask("both", offset(side, version, name), **stranger)
    ask("both of nowhere", offset(side, version, name), group_id=f"{group}-nowhere", **stranger)
    if version < FIRST_ID_VERSION:
        ask("empty name", offset(side, version, ""))
    parts = offset(side, version, name)
    parts.partitions = []
    ask("no partitions", parts)
    if version >= 6:
        ask("an epoch", offset(side, version, name, 1, committed_leader_epoch=3))
    if version <= 4:
        ask("kept for a while", offset(side, version, name), retention_time_ms=60_000)
    twice = offset(side, version, name)
    twice.partitions = [*twice.partitions, *offset(side, version, name, 0, 9).partitions]
    ask("twice", twice)
    _fetch_everything(side, group)


@probe(OffsetCommitRequest)
def commits_of_a_member(side: Side, version: int) -> None:
    name, group = side.topic("committed", 3), side.group(f"member-{version}")
    for question, identity in wrong_identities(group, *member_of(side, group)).items():
        if "group_instance_id" in identity and version < FIRST_STATIC_VERSION:
            continue
        epoch = identity.pop("generation_id")
        topics = [offset(side, version, name)]
        request = OffsetCommitRequest(
            topics=topics, generation_id_or_member_epoch=epoch, **identity
        )
        side.ask(request, version, question)
    side.ask(OffsetCommitRequest(group_id=group, topics=topics, **NOBODY), version, "nobody")
    _fetch_everything(side, group)


def _fetch_everything(side: Side, group: str) -> None:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=None)])
    side.ask(request, 9, "what is committed", hashed=True)


def fetch_request(
    side: Side, version: int, group: str, *asked: tuple[str, list[int]], everything: bool = False
) -> OffsetFetchRequest:
    """Ask for a group's offsets of topics, or of all."""
    if version < FIRST_SEVERAL_GROUPS:
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in asked]
        return OffsetFetchRequest(group_id=group, topics=None if everything else old)
    topics = [
        OffsetFetchRequestTopics(name=name, partition_indexes=each)
        if version < FIRST_ID_VERSION
        else OffsetFetchRequestTopics(
            topic_id=side.topic_id(name) if side.has(name) else STRANGER, partition_indexes=each
        )
        for name, each in asked
    ]
    wanted = OffsetFetchRequestGroup(group_id=group, topics=None if everything else topics)
    return OffsetFetchRequest(groups=[wanted])


@probe(OffsetFetchRequest)
def fetches(side: Side, version: int) -> None:
    name, group = side.topic("committed", 3), side.group("fetched")
    if not side.once("fetched"):
        epoch = offset(side, 9, name, 1, 8, committed_leader_epoch=0)
        for topic in (offset(side, 9, name), epoch):
            side.prepare(OffsetCommitRequest(group_id=group, topics=[topic], **NOBODY), 9)
    nowhere = side.name("nowhere")
    cases: dict[str, list[tuple[str, list[int]]]] = {
        "some": [(name, [0, 1, 2])],
        "unknown partition": [(name, [9, 0, -1])],
        "unknown topic": [(nowhere, [0]), (name, [0])],
        "twice": [(name, [0, 0])],
        "no partitions": [(name, [])],
        "nothing": [],
    }
    for question, asked in cases.items():
        for stable in (False, True):
            for which in (group, f"{group}-nowhere", ""):
                request = fetch_request(side, version, which, *asked)
                request.require_stable = stable
                side.ask(request, version, f"{question} of {which} {stable}")
    if version > 1:
        for which in (group, f"{group}-nowhere", ""):
            everything = fetch_request(side, version, which, everything=True)
            side.ask(everything, version, f"everything of {which}", hashed=True)


@probe(OffsetFetchRequest, range(8, 11))
def fetches_of_several_groups(side: Side, version: int) -> None:
    name, group = side.topic("committed", 3), side.group(f"several-{version}")
    topic = offset(side, 9, name)
    side.prepare(OffsetCommitRequest(group_id=group, topics=[topic], **NOBODY), 9)
    one = fetch_request(side, version, group, (name, [0])).groups or []
    two = fetch_request(side, version, f"{group}-nowhere", everything=True).groups or []
    for question, groups in {
        "two": one + two,
        "the same twice": one + one,
        "none": [],
    }.items():
        side.ask(OffsetFetchRequest(groups=groups), version, question)
    if version >= 9:
        for member_id, epoch in (("stranger", 1), ("stranger", -1), ("", 5), (None, 5)):
            wanted = one[0]
            wanted.member_id, wanted.member_epoch = member_id, epoch
            side.ask(OffsetFetchRequest(groups=[wanted]), version, f"{member_id} at {epoch}")


@probe(OffsetFetchRequest, (1, 7, 8, 9, 10))
def offsets_of_a_deleted_topic(side: Side, version: int) -> None:
    name, group = side.topic(f"gone-{version}"), side.group(f"gone-{version}")
    kept = side.topic("committed", 3)
    for topic in (name, kept):
        topics = [offset(side, 9, topic)]
        side.prepare(OffsetCommitRequest(group_id=group, topics=topics, **NOBODY), 9)
    stale = fetch_request(side, version, group, (name, [0]), (kept, [0]))
    side.delete_topic(name)
    everything = fetch_request(side, 9, group, everything=True)
    deadline = time.monotonic() + SECONDS_MAX
    while len(side.prepare(everything, 9).groups[0].topics) > 1:
        assert time.monotonic() < deadline, "the offsets stay"
    side.ask(stale, version, "deleted")
    side.topic(f"gone-{version}")
    side.ask(stale, version, "made anew, as before")
    side.ask(fetch_request(side, version, group, (name, [0])), version, "the new one")


@probe(OffsetDeleteRequest)
def deletions(side: Side, version: int) -> None:
    name, group = side.topic("committed", 3), side.group("offset-delete")
    reader = side.group("offset-delete-reader")
    for which in (group, reader):
        topics = [offset(side, 9, name, index) for index in (0, 1)]
        side.prepare(OffsetCommitRequest(group_id=which, topics=topics, **NOBODY), 9)
    member_of(side, reader)

    def ask(question: str, which: str, *asked: tuple[str, list[int]]) -> None:
        topics = [
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=n) for n in indexes],
            )
            for topic, indexes in asked
        ]
        side.ask(OffsetDeleteRequest(group_id=which, topics=topics), version, question)

    for which in (group, reader, f"{group}-nowhere", ""):
        ask(f"one of {which}", which, (name, [0]))
        ask(f"again {which}", which, (name, [0, 2]))
        ask(f"unknown of {which}", which, (name, [9]), (side.name("nowhere"), [0]))
        ask(f"mixed of {which}", which, (side.name("nowhere"), [0]), (name, [9, 2, -1]))
        ask(f"nothing of {which}", which)
        ask(f"no partitions of {which}", which, (name, []))
        ask(f"twice of {which}", which, (name, [1, 1]), (name, [1]))
    _fetch_everything(side, group)

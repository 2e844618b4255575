"""Offsets of groups: what is asked of the coordinator, and what its answers of all levels mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraft_wire.client.cluster import ClusterRefused
from kraft_wire.client.group_offsets import commit_offsets, committed_offsets, delete_offsets
from kraft_wire.client.refused import AdminRefused
from kraft_wire.client.share_group_offsets import (
    ShareOffset,
    alter_share_offsets,
    delete_share_offsets,
    share_offsets,
)
from kraft_wire.model import TopicPartition
from kraft_wire.wire.generated import (
    alter_share_group_offsets,
    delete_share_group_offsets,
    describe_share_group_offsets,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.message import Message

A, B, C = TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)
KEYS = [A, B, C]


class Coordinator:
    """The coordinator of group g: it has one answer, whose error its client must find."""

    group = "g"

    def __init__(self, answer: Message, retried: int) -> None:
        self._answer, self._retried = answer, retried
        self.asked: Any = None

    def send(
        self, request: Message, response: type[Message], code: Callable[[Any], int], **_: int
    ) -> Message:
        assert isinstance(self._answer, response)
        assert code(self._answer) == self._retried, "what is sent again depends on it"
        self.asked = request
        return self._answer


def named(request: Any) -> list[tuple[str, list[int]]]:
    """The topics of a request with their partitions."""
    found = []
    for topic in request.topics or ():
        name = getattr(topic, "name", None) or topic.topic_name
        partitions = getattr(topic, "partition_indexes", None)
        if partitions is None:
            partitions = [each.partition_index for each in topic.partitions]
        found.append((name, list(partitions)))
    return found


GROUPED = [("a", [0, 2]), ("b", [1])]
"""`KEYS`, topic by topic."""


# -- committed offsets ---------------------------------------------------------------------------


def fetched(
    top: int = 0, error: int = 0, offsets: tuple[int, ...] = (5, -1, 0)
) -> offset_fetch.OffsetFetchResponse:
    made: dict[str, list[Any]] = {}
    for key, offset in zip(KEYS, offsets, strict=True):
        made.setdefault(key.topic, []).append(
            offset_fetch.OffsetFetchResponsePartition(
                partition_index=key.partition,
                committed_offset=offset,
                error_code=error if key == C else 0,
            )
        )
    topics = [
        offset_fetch.OffsetFetchResponseTopic(name=name, partitions=each)
        for name, each in made.items()
    ]
    return offset_fetch.OffsetFetchResponse(error_code=top, topics=topics)


@pytest.mark.parametrize(("keys", "asked"), [(None, None), (KEYS, GROUPED), ([], [])])
def test_only_partitions_with_an_offset_are_told(
    keys: list[TopicPartition] | None, asked: list[Any] | None
) -> None:
    coordinator = Coordinator(fetched(), 0)
    assert committed_offsets(coordinator, keys) == {A: 5, C: 0}  # type: ignore[arg-type]  # a fake
    assert coordinator.asked.group_id == "g"
    assert (None if coordinator.asked.topics is None else named(coordinator.asked)) == asked


@pytest.mark.parametrize(
    ("answer", "retried", "text"),
    [
        (fetched(top=E.GROUP_AUTHORIZATION_FAILED), 30, "group g: GROUP_AUTHORIZATION_FAILED"),
        (fetched(error=E.UNSTABLE_OFFSET_COMMIT), 0, "group g: b-1: UNSTABLE_OFFSET_COMMIT"),
    ],
)
def test_refused_fetch_of_offsets_names_group_and_partition(
    answer: Message, retried: int, text: str
) -> None:
    with pytest.raises(ClusterRefused) as refused:
        committed_offsets(Coordinator(answer, retried), KEYS)  # type: ignore[arg-type]  # a fake
    assert str(refused.value) == text


@pytest.mark.parametrize(("errors", "code"), [((0, 0), 0), ((0, 25), 25), ((22, 25), 22)])
def test_commit_returns_the_first_error(errors: tuple[int, int], code: int) -> None:
    partitions = [
        offset_commit.OffsetCommitResponsePartition(partition_index=at, error_code=error)
        for at, error in enumerate(errors)
    ]
    topics = [
        offset_commit.OffsetCommitResponseTopic(name="a", partitions=partitions[:1]),
        offset_commit.OffsetCommitResponseTopic(name="b", partitions=partitions[1:]),
    ]
    coordinator = Coordinator(offset_commit.OffsetCommitResponse(topics=topics), code)
    found = commit_offsets(coordinator, {A: 1, B: 2, C: 3}, 7, "m")  # type: ignore[arg-type]  # a fake
    assert found == code
    asked = coordinator.asked
    assert (asked.group_id, asked.generation_id_or_member_epoch, asked.member_id) == ("g", 7, "m")
    assert named(asked) == GROUPED
    offsets = [each.committed_offset for topic in asked.topics for each in topic.partitions]
    assert offsets == [1, 2, 3]


# -- changes that may be refused -----------------------------------------------------------------


def deleted(top: int = 0, error: int = 0) -> Message:
    result = offset_delete.OffsetDeleteResponsePartition(partition_index=1, error_code=error)
    topic = offset_delete.OffsetDeleteResponseTopic(name="b", partitions=[result])
    return offset_delete.OffsetDeleteResponse(error_code=top, topics=[topic])


def altered(top: int = 0, error: int = 0) -> Message:
    module = alter_share_group_offsets
    result = module.AlterShareGroupOffsetsResponsePartition(
        partition_index=1, error_code=error, error_message="why" if error else None
    )
    topic = module.AlterShareGroupOffsetsResponseTopic(topic_name="b", partitions=[result])
    return module.AlterShareGroupOffsetsResponse(
        error_code=top, error_message="why" if top else None, responses=[topic]
    )


def share_deleted(top: int = 0, error: int = 0) -> Message:
    module = delete_share_group_offsets
    topic = module.DeleteShareGroupOffsetsResponseTopic(
        topic_name="b", error_code=error, error_message="why" if error else None
    )
    return module.DeleteShareGroupOffsetsResponse(
        error_code=top, error_message="why" if top else None, responses=[topic]
    )


def described(top: int = 0, error: int = 0, lag: int = 4) -> Message:
    module = describe_share_group_offsets
    result = module.DescribeShareGroupOffsetsResponsePartition(
        partition_index=1,
        start_offset=-1 if lag < 0 else 0,
        lag=lag,
        error_code=error,
        error_message="why" if error else None,
    )
    topic = module.DescribeShareGroupOffsetsResponseTopic(topic_name="b", partitions=[result])
    group = module.DescribeShareGroupOffsetsResponseGroup(
        group_id="g", error_code=top, error_message="why" if top else None, topics=[topic]
    )
    return module.DescribeShareGroupOffsetsResponse(groups=[group])


CHANGES: list[tuple[Callable[..., object], Callable[..., Message], str, str]] = [
    (lambda to: delete_offsets(to, KEYS), deleted, "", "group g: b-1"),
    (lambda to: alter_share_offsets(to, {A: 1, B: 2, C: 3}), altered, ": why", "group g: b-1"),
    (lambda to: delete_share_offsets(to, "b"), share_deleted, ": why", "group g: b"),
    (share_offsets, described, ": why", "group g: b-1"),
]


@pytest.mark.parametrize(("change", "answer", "why", "place"), CHANGES)
def test_refusal_of_every_level_is_told_and_none_is_none(
    change: Callable[..., object], answer: Callable[..., Message], why: str, place: str
) -> None:
    change(Coordinator(answer(), 0))
    for levels, what in (((E.NON_EMPTY_GROUP, 0), "group g"), ((0, E.NON_EMPTY_GROUP), place)):
        with pytest.raises(AdminRefused) as refused:
            change(Coordinator(answer(*levels), levels[0]))
        assert str(refused.value) == f"{what}: NON_EMPTY_GROUP{why}"
        assert refused.value.error is E.NON_EMPTY_GROUP


def test_changes_name_every_partition_once() -> None:
    for change, answer, _, _ in CHANGES[:2]:
        coordinator = Coordinator(answer(), 0)
        change(coordinator)
        assert (coordinator.asked.group_id, named(coordinator.asked)) == ("g", GROUPED)
    offsets = [each.start_offset for topic in coordinator.asked.topics for each in topic.partitions]
    assert offsets == [1, 2, 3]


@pytest.mark.parametrize(("lag", "found"), [(4, ShareOffset(0, 4)), (-1, ShareOffset(None, None))])
def test_share_offset_may_be_unknown(lag: int, found: ShareOffset) -> None:
    coordinator = Coordinator(described(lag=lag), 0)
    assert share_offsets(coordinator) == {C: found}  # type: ignore[arg-type]  # a fake
    (group,) = coordinator.asked.groups
    assert (group.group_id, group.topics) == ("g", None)

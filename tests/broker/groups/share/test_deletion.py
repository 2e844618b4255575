"""Share groups in DeleteGroups, and in requests about committed offsets."""

from __future__ import annotations

from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.coordination.log import TransactionalWrite
from kraft_wire.broker.groups.offsets.commit import commit_offsets
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.share_persister import PersisterResult
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.offset_commit import OffsetCommitRequest
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.broker.groups.harness import Harness, Reply
from tests.broker.groups.requests import Member, commit_topic, fetch_group
from tests.broker.groups.share.ready_share_groups import key, left
from tests.broker.groups.share.test_initialization import noted
from tests.broker.groups.test_share_group_heartbeat import (
    joining,
    leaving,
    send,
    sharing,
    with_topic,
)


def delete(harness: Harness, *groups: str) -> Reply:
    return harness.send(DeleteGroupsRequest(groups_names=list(groups)), 2)


def errors(reply: Reply) -> dict[str, int]:
    return {each.group_id: each.error_code for each in reply.response.results}


def test_the_state_of_a_group_is_deleted_before_the_group() -> None:
    """932-INIT-07, 932-ADMIN-09."""
    harness = left()
    Member(harness, group_id="classic").commit()
    send(harness, joining(group_id="full"))
    harness.share_persister.calls.clear()
    before = len(noted(harness))
    reply = delete(harness, "group", "missing", "full", "classic")
    assert reply.is_parked
    assert noted(harness)[before:] == [({}, {}, ["topic"])]
    written = len(harness.store.records())
    call = harness.share_persister.take()
    assert (call.verb, sorted(call.partitions)) == ("delete", [key(0), key(1)])
    call.answer()
    assert errors(reply) == {"group": 0, "missing": 69, "full": 68, "classic": 0}
    tombstones = [
        (found[0][1], found[1])
        for found in harness.store.records()[written:]
        if found[0] is not None and found[0][1] != 1
    ]
    assert [kind for kind, _ in tombstones][:3] == [12, 15, 11]
    assert all(value is None for _, value in tombstones)
    harness.check_memory()


def test_a_group_whose_state_cannot_be_deleted_stays() -> None:
    """932-INIT-07: it may be tried again."""
    harness = left()
    reply = delete(harness, "group")
    harness.share_persister.take().answer(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert errors(reply) == {"group": 15}
    assert noted(harness)[-1] == ({}, {}, ["topic"])
    again = delete(harness, "group")
    harness.share_persister.take().answer()
    assert errors(again) == {"group": 0}


@pytest.mark.parametrize("failing", [0, 1])
def test_one_share_partition_whose_state_stays_keeps_its_group(failing: int) -> None:
    """932-INIT-07: whichever it is."""
    harness = left()
    reply = delete(harness, "group")
    results = [PersisterResult(ErrorCode.NONE), PersisterResult(ErrorCode.NOT_COORDINATOR)]
    harness.share_persister.take().answer_each(lambda each: results[each.partition == failing])
    assert errors(reply) == {"group": 16}


def test_nothing_is_deleted_before_the_isr_has_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """932-INIT-07: nor the group, if the record may be lost."""
    harness = left()
    waits: list[Any] = []
    shard = harness.groups.shard_at(0)
    assert isinstance(shard, GroupShard)
    log = type(shard.log)
    monkeypatch.setattr(log, "high_watermark", lambda _: 0)
    append = log.append_for_later
    monkeypatch.setattr(log, "append_for_later", lambda *given: append(*given)._replace(safe_at=7))
    monkeypatch.setattr(log, "await_commit", lambda _, *given: waits.append(given))
    reply = delete(harness, "group")
    ((_, at, committed),) = waits
    committed(ErrorCode.COORDINATOR_NOT_AVAILABLE, at)
    assert harness.share_persister.calls == []
    assert errors(reply) == {"group": 15}


def test_groups_are_deleted_together_once_the_state_of_each_is_gone() -> None:
    harness = left()
    send(harness, joining(group_id="second"))
    harness.share_persister.take().answer()
    send(harness, leaving(group_id="second"))
    reply = delete(harness, "second", "group")
    calls = [each for each in harness.share_persister.calls if each.verb == "delete"]
    assert len(calls) == 2
    calls[0].answer()
    assert reply.is_parked
    calls[1].answer(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert sorted(errors(reply).items()) == [("group", 15), ("second", 0)]


def test_a_group_that_gets_a_member_meanwhile_stays() -> None:
    """932-ADMIN-09."""
    harness = left()
    reply = delete(harness, "group")
    send(harness, joining())
    call = next(each for each in harness.share_persister.calls if each.verb == "delete")
    call.answer()
    assert errors(reply) == {"group": 68}


def test_a_group_without_state_is_deleted_at_once() -> None:
    """932-ADMIN-09."""
    harness = with_topic(1)
    send(harness, joining(subscribed_topic_names=["missing"]))
    send(harness, leaving())
    assert errors(delete(harness, "group")) == {"group": 0}
    harness.check_memory()


def test_a_share_group_has_no_committed_offsets() -> None:
    """932-ADMIN-10: with members and without."""
    harness = sharing("member")
    member = Member(harness)
    for _ in range(2):
        assert member.commit() == ErrorCode.GROUP_ID_NOT_FOUND
        topic = OffsetDeleteRequestTopic(
            name="topic", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
        )
        deletion = OffsetDeleteRequest(group_id="group", topics=[topic])
        assert harness.send(deletion, 0).error == ErrorCode.GROUP_ID_NOT_FOUND
        commit = OffsetCommitRequest(group_id="group", topics=[commit_topic("topic", 1)])
        shard = harness.groups.shard_at(0)
        assert isinstance(shard, GroupShard)
        at = ClockReading(harness.now_ms, harness.wall_ms)
        write = TransactionalWrite(1, 0, None)
        (in_transaction,) = commit_offsets(shard, commit, commit.topics, 9, at, write).topics
        assert in_transaction.partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
        (group,) = harness.send(fetch_group("group", "topic"), 9).response.groups
        (found,) = group.topics[0].partitions
        assert (group.error_code, found.error_code, found.committed_offset) == (0, 0, -1)
        send(harness, leaving())


def test_a_deletion_that_cannot_be_noted_asks_no_share_coordinator() -> None:
    """As any append that fails: the client asks again, and nothing has changed."""
    harness = left()
    harness.share_persister.calls.clear()
    before = len(harness.store.records())
    harness.store.refusals.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert errors(delete(harness, "group")) == {"group": ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert len(harness.share_persister.calls) == 0
    assert len(harness.store.records()) == before
    reply = delete(harness, "group")
    harness.share_persister.take().answer()
    assert errors(reply) == {"group": ErrorCode.NONE}

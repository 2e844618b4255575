"""What is written of groups counts when the ISR has it: a new coordinator would say the same."""

import random
from dataclasses import replace

from kraft_wire.broker.coordination.memory import MemoryUse
from kraft_wire.broker.groups.offsets.table import CommittedOffset, OffsetKey, OffsetTable
from kraft_wire.broker.groups.offsets.uncommitted import UncommittedOffsets
from kraft_wire.broker.groups.shard import GroupShard
from kraft_wire.broker.handlers import (
    delete_groups,
    fetch,
    join_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from kraft_wire.broker.metadata.metadata_cache import OFFSETS_TOPIC
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import StorageError, TopicPartition, Uuid
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.disk.open_files import DiskFault
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.wire.generated.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from kraft_wire.wire.generated.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kraft_wire.wire.generated.list_groups import ListGroupsRequest
from kraft_wire.wire.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kraft_wire.wire.generated.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kraft_wire.wire.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kraft_wire.wire.generated.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tests.broker.replication.leading import FETCH_VERSION, TOPIC, Leading, Waiting
from tests.broker.small_broker import id_of, image_of, partition_image, publish

COMMIT_TIMEOUT_MS = 5_000
OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


class Coordinating(Leading):
    """Broker 1 leads the one partition of `__consumer_offsets`, broker 2 follows."""

    def __init__(self) -> None:
        super().__init__(partition_image(0, replicas=(1, 2)))

    def publish(self) -> None:
        topics = {OFFSETS_TOPIC: self.partitions.values(), TOPIC: [partition_image(0)]}
        publish(self.broker, image_of(topics, self.brokers.values()), self.now_ms)

    def follow(self) -> None:
        """Broker 2 has all that there is."""
        end = self.broker.partitions[OFFSETS_TOPIC, 0].log_end_offset
        asked = FetchPartition(fetch_offset=end, partition_max_bytes=1 << 20)
        request = FetchRequest(
            topics=[FetchTopic(topic_id=id_of(OFFSETS_TOPIC), partitions=[asked])],
            replica_state=ReplicaState(replica_id=2, replica_epoch=12),
        )
        fetch.handle(self.broker, self.context(FETCH_VERSION), request)

    def commit(self, offset: int) -> Waiting:
        place = OffsetCommitRequestPartition(committed_offset=offset)
        topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=[place])]
        context = self.context(9)
        request = OffsetCommitRequest(group_id="g", topics=topics)
        return Waiting(self, context, offset_commit.handle(self.broker, context, request))

    def delete_offset(self) -> Waiting:
        topic = OffsetDeleteRequestTopic(name=TOPIC, partitions=[OffsetDeleteRequestPartition()])
        context = self.context(0)
        request = OffsetDeleteRequest(group_id="g", topics=[topic])
        return Waiting(self, context, offset_delete.handle(self.broker, context, request))

    def delete_groups(self, *group_ids: str) -> Waiting:
        context = self.context(2)
        request = DeleteGroupsRequest(groups_names=list(group_ids))
        return Waiting(self, context, delete_groups.handle(self.broker, context, request))

    @property
    def shown(self) -> int | None:
        """The offset that readers get, asked for by name and with all of the group's."""
        named = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
        groups = [OffsetFetchRequestGroup(group_id="g", topics=each) for each in (named, None)]
        request = OffsetFetchRequest(groups=groups)
        answer = offset_fetch.handle(self.broker, self.context(9), request)
        assert isinstance(answer, OffsetFetchResponse)
        by_name, by_group = answer.groups
        offset = by_name.topics[0].partitions[0].committed_offset
        assert [each.partitions[0].committed_offset for each in by_group.topics] == (
            [] if offset == -1 else [offset]
        )
        return None if offset == -1 else offset


def error_of(waiting: Waiting) -> int:
    """The error of the place, or of the group, that was asked for."""
    answer = waiting.answer
    if isinstance(answer, OffsetCommitResponse):
        return answer.topics[0].partitions[0].error_code
    if isinstance(answer, DeleteGroupsResponse):
        return answer.results[0].error_code
    assert isinstance(answer, OffsetDeleteResponse), answer
    return answer.error_code or answer.topics[0].partitions[0].error_code


def committed(offset: int) -> Coordinating:
    """A coordinator whose group has an offset that every replica knows."""
    leading = Coordinating()
    waiting = leading.commit(offset)
    assert (waiting.is_parked, leading.shown) == (True, None)
    leading.follow()
    assert (error_of(waiting), leading.shown) == (E.NONE, offset)
    return leading


def test_an_offset_is_shown_when_the_isr_has_it() -> None:
    leading = committed(90)
    waiting = [leading.commit(100), leading.commit(110)]
    assert ([each.is_parked for each in waiting], leading.shown) == ([True, True], 90)
    leading.follow()
    assert ([error_of(each) for each in waiting], leading.shown) == ([E.NONE, E.NONE], 110)


def test_an_offset_whose_commit_was_answered_with_an_error_is_not_shown() -> None:
    leading = committed(90)
    waiting = leading.commit(100)
    leading.pass_time(COMMIT_TIMEOUT_MS)
    assert (error_of(waiting), leading.shown) == (E.COORDINATOR_NOT_AVAILABLE, 90)


def test_a_deletion_of_offsets_is_answered_when_the_isr_knows_it() -> None:
    leading = committed(90)
    first, again = leading.delete_offset(), leading.delete_offset()
    assert (first.is_parked, again.is_parked, leading.shown) == (True, True, 90)
    leading.follow()
    assert (error_of(first), error_of(again), leading.shown) == (E.NONE, E.NONE, None)


def test_a_deletion_that_the_isr_does_not_learn_of_in_time_is_no_success() -> None:
    leading = committed(90)
    waiting = leading.delete_offset()
    leading.pass_time(COMMIT_TIMEOUT_MS)
    assert (error_of(waiting), leading.shown) == (E.COORDINATOR_NOT_AVAILABLE, 90)


def test_a_deletion_that_a_new_coordinator_may_not_know_is_no_success() -> None:
    leading = committed(90)
    offset, group = leading.delete_offset(), leading.delete_groups("g")
    leading.change(leader=2, leader_epoch=1)
    assert (error_of(offset), error_of(group)) == (E.NOT_COORDINATOR, E.NOT_COORDINATOR)


def test_a_group_is_deleted_when_the_isr_knows_it() -> None:
    leading = committed(90)
    waiting = leading.delete_groups("g", "nobody")
    assert (waiting.is_parked, leading.shown) == (True, 90)
    leading.follow()
    assert isinstance(waiting.answer, DeleteGroupsResponse)
    answered = {each.group_id: each.error_code for each in waiting.answer.results}
    assert answered == {"g": E.NONE, "nobody": E.GROUP_ID_NOT_FOUND}
    assert leading.shown is None


def test_readers_are_shown_the_changes_below_the_high_watermark_and_no_others() -> None:
    random_source = random.Random(4)
    memory = MemoryUse(lambda: 1 << 30)
    table = OffsetTable(memory)
    uncommitted = UncommittedOffsets(table, memory, lambda: high_watermark)
    keys = [OffsetKey("g", topic, number) for topic in "ab" for number in range(2)]
    log: list[tuple[int, OffsetKey, CommittedOffset | None]] = []
    high_watermark = 0
    for end in range(1, 500):
        new = None if random_source.random() < 0.3 else CommittedOffset(end, -1, "m" * end, 0, None)
        log.append((end, random_source.choice(keys), new))
        uncommitted.change(*log[-1][1:], end)
        if random_source.random() < 0.4:
            high_watermark = random_source.randint(high_watermark, end)
        told = {key: value for at, key, value in log if at <= high_watermark}
        shown = {key: value for key, value in told.items() if value is not None}
        assert {key: uncommitted.get(key) for key in keys} == {key: told.get(key) for key in keys}
        assert {
            OffsetKey("g", topic, number): value
            for topic, partitions in uncommitted.of_group("g").items()
            for number, value in partitions.items()
        } == shown
        assert uncommitted.safe_at == (end if high_watermark < end else None)
    table.release()
    uncommitted.release()
    assert memory.total_bytes == 0


def test_commits_that_wait_for_the_isr_are_refused_where_they_would_fill_the_memory() -> None:
    """While a replica pauses nothing is committed, and each change keeps what it replaces."""
    bound = 20_000
    leading = committed(90)
    leading.broker.settings = replace(
        leading.broker.settings, group_coordinator_memory_max_bytes=bound
    )
    memory = leading.broker.groups.env.memory
    waiting = [leading.commit(100 + number) for number in range(100)]
    parked = [each for each in waiting if each.is_parked]
    refused = [each for each in waiting if not each.is_parked]
    assert {error_of(each) for each in refused} == {E.POLICY_VIOLATION}
    assert len(parked) > 10
    assert memory.total_bytes <= bound
    leading.follow()
    assert {error_of(each) for each in parked} == {E.NONE}
    again = leading.commit(500)
    leading.follow()
    assert (error_of(again), leading.shown) == (E.NONE, 500)


def test_a_commit_that_names_a_place_again_and_again_keeps_no_more_than_the_memory_may() -> None:
    bound = 20_000
    leading = committed(90)
    leading.broker.settings = replace(
        leading.broker.settings, group_coordinator_memory_max_bytes=bound
    )
    places = [OffsetCommitRequestPartition(committed_offset=number) for number in range(1_000)]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=places)]
    context = leading.context(9)
    request = OffsetCommitRequest(group_id="g", topics=topics)
    waiting = Waiting(leading, context, offset_commit.handle(leading.broker, context, request))
    assert leading.broker.groups.env.memory.total_bytes <= bound
    leading.follow()
    assert isinstance(waiting.answer, OffsetCommitResponse)
    errors = [each.error_code for each in waiting.answer.topics[0].partitions]
    assert (errors[0], errors[-1], len(errors)) == (E.NONE, E.POLICY_VIOLATION, 1_000)


def join(leading: Coordinating, member_id: str = "", instance_id: str | None = None) -> Waiting:
    """A JoinGroup with one protocol."""
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    # Before static members there were no given ids: one JoinGroup is enough in either version.
    context = leading.context(3 if instance_id is None else 9)
    return Waiting(leading, context, join_group.handle(leading.broker, context, request))


def joined(waiting: Waiting) -> JoinGroupResponse:
    answer = waiting.answer
    assert isinstance(answer, JoinGroupResponse), answer
    return answer


def share_out(leading: Coordinating, instance_id: str | None = None) -> Waiting:
    """A group of one forms a generation; its leader's SyncGroup."""
    joining = join(leading, instance_id=instance_id)
    leading.pass_time(4_000)  # nobody else came
    return sync(leading, joined(joining), b"all", instance_id)


def sync(
    leading: Coordinating, member: JoinGroupResponse, assignment: bytes, instance: str | None = None
) -> Waiting:
    """The SyncGroup of the leader of a group of one."""
    share = SyncGroupRequestAssignment(member_id=member.member_id, assignment=assignment)
    request = SyncGroupRequest(
        group_id="g",
        generation_id=member.generation_id,
        member_id=member.member_id,
        group_instance_id=instance,
        assignments=[share],
    )
    context = leading.context(3)
    return Waiting(leading, context, sync_group.handle(leading.broker, context, request))


def with_static_member() -> tuple[Coordinating, str]:
    """A stable group of one static member, and its id."""
    leading = Coordinating()
    syncing = share_out(leading, "i")
    leading.follow()
    assert not syncing.is_parked
    shard = leading.broker.groups.shard_of("g")
    assert isinstance(shard, GroupShard)
    return leading, shard.groups["g"].static_members["i"]


def test_an_assignment_is_handed_out_when_the_isr_has_it() -> None:
    """Else the next coordinator gives the same generation's partitions to others."""
    leading = Coordinating()
    syncing = share_out(leading)
    assert syncing.is_parked
    leading.follow()
    answer = syncing.answer
    assert isinstance(answer, SyncGroupResponse)
    assert (answer.error_code, bytes(answer.assignment)) == (E.NONE, b"all")


def test_an_assignment_that_the_isr_does_not_get_in_time_is_none() -> None:
    leading = Coordinating()
    syncing = share_out(leading)
    leading.pass_time(COMMIT_TIMEOUT_MS)
    answer = syncing.answer
    assert isinstance(answer, SyncGroupResponse)
    assert answer.error_code == E.COORDINATOR_NOT_AVAILABLE


def test_of_two_assignments_for_one_generation_the_newer_is_handed_out_and_loaded() -> None:
    """A leader whose connection broke is told its generation again, and may decide otherwise."""
    leading = Coordinating()
    joining = join(leading)
    leading.pass_time(4_000)
    member = joined(joining)
    first = sync(leading, member, b"A")
    again = join(leading, member.member_id)
    assert joined(again).generation_id == member.generation_id
    second = sync(leading, member, b"B")
    assert isinstance(first.answer, SyncGroupResponse)
    assert first.answer.error_code == E.REBALANCE_IN_PROGRESS
    leading.follow()
    assert isinstance(second.answer, SyncGroupResponse)
    assert bytes(second.answer.assignment) == b"B"
    lead_again(leading)
    leading.follow()
    shard = leading.broker.groups.shard_of("g")
    assert isinstance(shard, GroupShard)
    assert shard.groups["g"].members[member.member_id].assignment == b"B"


def test_assignments_that_wait_for_the_isr_are_counted_and_do_not_pile_up() -> None:
    leading = Coordinating()
    joining = join(leading)
    leading.pass_time(4_000)
    memory = leading.broker.groups.env.memory
    before = memory.total_bytes
    for size_bytes in (1_000, 3_000, 2_000):
        sync(leading, joined(joining), bytes(size_bytes))
        assert memory.total_bytes == before + size_bytes
    leading.follow()
    assert memory.total_bytes == before + 2_000, "the member has them"
    sync(leading, joined(join(leading, joined(joining).member_id)), bytes(500))
    leading.pass_time(COMMIT_TIMEOUT_MS)
    assert memory.total_bytes == before


def test_a_restarted_static_member_is_told_its_new_id_when_the_isr_has_it() -> None:
    """Else the next coordinator knows the instance by its former id, and fences the new one."""
    leading, former = with_static_member()
    joining = join(leading, instance_id="i")
    assert joining.is_parked
    leading.follow()
    member = joined(joining)
    assert (member.error_code, member.generation_id, member.skip_assignment) == (E.NONE, 1, True)
    assert member.member_id != former


def test_a_static_member_whose_new_id_the_isr_does_not_get_in_time_keeps_the_former_one() -> None:
    leading, former = with_static_member()
    joining = join(leading, instance_id="i")
    leading.pass_time(COMMIT_TIMEOUT_MS)
    assert joined(joining).error_code == E.COORDINATOR_NOT_AVAILABLE
    shard = leading.broker.groups.shard_of("g")
    assert isinstance(shard, GroupShard)
    assert list(shard.groups["g"].members) == [former]
    leading.follow()
    again = join(leading, instance_id="i")
    leading.follow()
    assert joined(again).error_code == E.NONE


def test_a_static_member_that_restarts_twice_is_answered_for_its_last_life_alone() -> None:
    leading, _ = with_static_member()
    first, second = join(leading, instance_id="i"), join(leading, instance_id="i")
    assert joined(first).error_code == E.FENCED_INSTANCE_ID
    assert second.is_parked
    leading.follow()
    assert joined(second).error_code == E.NONE


def test_a_static_member_waits_for_the_generation_of_a_rebalance_that_began_meanwhile() -> None:
    leading, _ = with_static_member()
    joining, other = join(leading, instance_id="i"), join(leading)
    leading.follow()
    members = [joined(joining), joined(other)]
    assert [each.error_code for each in members] == [E.NONE, E.NONE]
    assert [each.generation_id for each in members] == [2, 2]


def test_a_static_member_is_sent_to_the_new_coordinator_with_what_this_one_may_have_lost() -> None:
    leading, _ = with_static_member()
    joining = join(leading, instance_id="i")
    leading.change(leader=2, leader_epoch=1)
    assert joined(joining).error_code == E.NOT_COORDINATOR


def lead_again(leading: Coordinating) -> None:
    """Broker 2 leads for a moment, and the coordinator reads its log anew."""
    for leader in (2, 1):
        leading.change(leader=leader, leader_epoch=leading.partitions[0].leader_epoch + 1)
    for _ in range(3):
        leading.pass_time(10)


def test_a_new_coordinator_shows_what_it_loaded_when_the_isr_has_it() -> None:
    """What its log has above the high watermark may never be committed; below, it is too old."""
    leading = committed(90)
    leading.commit(100)
    lead_again(leading)
    assert leading.broker.groups.shard_of("g") == E.COORDINATOR_LOAD_IN_PROGRESS
    assert leading.broker.groups.runtime.deadline_ms() is None, "it does not look again and again"
    leading.pass_time(COMMIT_TIMEOUT_MS)
    assert leading.broker.groups.shard_of("g") == E.COORDINATOR_LOAD_IN_PROGRESS
    leading.follow()
    assert leading.shown == 100


def test_groups_are_listed_while_too_few_replicas_are_left_to_commit_what_was_loaded() -> None:
    leading = committed(90)
    leading.commit(100)
    log = leading.logs.logs[TopicPartition(OFFSETS_TOPIC, 0)]
    log.update_config(LogConfig.from_mapping({"min.insync.replicas": "2"}))
    leading.change(isr=(1,))
    lead_again(leading)
    leading.pass_time(10 * COMMIT_TIMEOUT_MS)
    assert leading.broker.groups.shard_of("g") == E.COORDINATOR_LOAD_IN_PROGRESS
    answer = list_groups.handle(leading.broker, leading.context(5), ListGroupsRequest())
    assert (answer.error_code, [each.group_id for each in answer.groups]) == (E.NONE, ["g"])


def test_a_disk_error_while_groups_are_loaded_costs_their_partition_not_the_broker() -> None:
    leading = committed(90)
    leading.logs.failed_with = [OFFSETS]
    leading.change(leader=2, leader_epoch=1)
    leading.logs.fs.fault = (leading.logs.fs.calls_count, DiskFault.EIO)
    leading.change(leader=1, leader_epoch=2)
    assert leading.logs.fs.failed_operation == "read"
    assert leading.broker.partitions[OFFSETS].offline
    assert leading.broker.groups.shard_of("g") == E.COORDINATOR_LOAD_IN_PROGRESS


def test_groups_of_a_damaged_log_are_not_served_and_do_not_end_the_broker() -> None:
    leading = committed(90)
    for offset in (100, 110):
        leading.commit(offset)
        leading.follow()
    file = leading.logs.logs[OFFSETS].segments[0].file
    size_bytes = int.from_bytes(file.pread(4, 8)) + 12
    assert file.pread(1, size_bytes + 16) == b"\x02"
    file.pwrite(b"\x7f", size_bytes + 16)
    lead_again(leading)
    leading.follow()
    assert leading.broker.groups.shard_of("g") == E.COORDINATOR_LOAD_IN_PROGRESS


def test_groups_whose_log_is_out_of_use_are_looked_at_now_and_then() -> None:
    leading = committed(90)
    leading.logs.failed_with = [OFFSETS]
    leading.broker.partitions[OFFSETS].failed(StorageError("write", "a file", "no such device"))
    lead_again(leading)
    leading.pass_time(0)
    deadline_ms = leading.broker.groups.runtime.deadline_ms()
    assert deadline_ms is not None
    assert deadline_ms > leading.now_ms, "it does not look again and again"
    leading.broker.partitions[OFFSETS].offline = False
    leading.pass_time(deadline_ms - leading.now_ms)
    leading.follow()
    assert leading.shown == 90


def test_groups_go_with_a_topic_that_is_made_again_before_the_broker_hears_of_its_end() -> None:
    """The new one's leader epochs begin where those of the former one did."""
    leading = committed(90)
    leading.logs.fs = SimFileSystem()  # the former log's files go later
    image = leading.broker.image
    assert isinstance(image, MetadataImage)
    topic_id = Uuid(b"made once again.")
    known = image.topics_by_name[OFFSETS_TOPIC]
    publish(
        leading.broker,
        replace(
            image,
            topics_by_name={
                **image.topics_by_name,
                OFFSETS_TOPIC: replace(known, topic_id=topic_id),
            },
            topic_names={id_of(TOPIC): TOPIC, topic_id: OFFSETS_TOPIC},
        ),
        leading.now_ms,
    )
    assert leading.broker.partitions[OFFSETS].log_end_offset == 0
    assert leading.shown is None

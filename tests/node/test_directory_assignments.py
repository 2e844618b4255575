"""Assignments of replicas to directories against scripted answers: what is asked when (KIP-858).

Times and the size of a request are those of release 4.3.1's AssignmentsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.directory_ids import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.model import TopicPartition, Uuid
from kraft_wire.node.registration.directory_assignments import ASSIGNMENTS_MAX, DirectoryAssignments
from kraft_wire.wire.generated.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ResponseDirectoryData,
    ResponsePartitionData,
    ResponseTopicData,
)
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.broker.small_broker import id_of, image_of, partition_image

FIRST, SECOND = Uuid(b"1" * 16), Uuid(b"2" * 16)
EPOCH = 77
Asked = list[tuple[Uuid, Uuid, int]]
"""Directory, topic id and partition."""


@dataclass
class Broker:
    """Broker 1 over two directories, with the clock and the controller in the test's hand."""

    ids: tuple[Uuid, ...] = (FIRST, SECOND)
    now_ms: int = 1_000
    requests: list[AssignReplicasToDirsRequest] = field(default_factory=list)
    answered: Callable[[Message, int], None] = print
    image: MetadataImage = EMPTY_IMAGE

    def __post_init__(self) -> None:
        self.directories: list[Any] = [
            SimpleNamespace(path=str(each), logs={}, damaged={}, meta=_meta(each))
            for each in self.ids
        ]
        self.assignments = DirectoryAssignments(1, self.directories, lambda: EPOCH, self.ask)

    def ask(self, request: Message, answered: Callable[[Message, int], None]) -> None:
        assert isinstance(request, AssignReplicasToDirsRequest)
        assert (request.broker_id, request.broker_epoch) == (1, EPOCH)
        self.requests.append(request)
        self.answered = answered

    def answer(self, response: Message) -> None:
        self.answered(response, self.now_ms)

    def put(self, directory: int, topic: str, *numbers: int) -> None:
        for number in numbers:
            self.directories[directory].logs[TopicPartition(topic, number)] = object()

    def publish(self, told: Mapping[str, list[Uuid]], level: int = 30) -> None:
        """Publish what the controller has, by topic and partition."""
        before, self.image = self.image, _image(told, level)
        delta = MetadataDelta.between(before, self.image)
        self.assignments.published(delta, self.now_ms)

    def advance(self, ms: int) -> list[Asked]:
        """What is asked meanwhile, request by request."""
        known, until_ms = len(self.requests), self.now_ms + ms
        while (due_ms := self.assignments.deadline_ms()) is not None and due_ms <= until_ms:
            self.now_ms = max(self.now_ms, due_ms)
            self.assignments.tick(self.now_ms, 0)
            if self.assignments.deadline_ms() == due_ms:
                break
        self.now_ms = until_ms
        return [_content(each) for each in self.requests[known:]]

    def reply(self, error: ErrorCode = ErrorCode.NONE, *refused: int) -> None:
        """Answer the last request, with an error as a whole or for some partitions."""
        if error is not ErrorCode.NONE and not refused:
            self.answer(AssignReplicasToDirsResponse(error_code=error))
            return
        directories = [
            ResponseDirectoryData(
                id=each.id,
                topics=[
                    ResponseTopicData(
                        topic_id=topic.topic_id,
                        partitions=[
                            ResponsePartitionData(
                                partition_index=one.partition_index,
                                error_code=error if one.partition_index in refused else 0,
                            )
                            for one in topic.partitions
                        ],
                    )
                    for topic in each.topics
                ],
            )
            for each in self.requests[-1].directories
        ]
        self.answer(AssignReplicasToDirsResponse(directories=directories))


def _meta(directory_id: Uuid) -> SimpleNamespace:
    return SimpleNamespace(directory_id=directory_id)


def _image(told: Mapping[str, list[Uuid]], level: int) -> MetadataImage:
    image = image_of(
        {
            name: [
                partition_image(number, directories=(each,) if any(each) else ())
                for number, each in enumerate(directories)
            ]
            for name, directories in told.items()
        }
    )
    values = {slot: getattr(image, slot) for slot in type(image).__slots__}
    return MetadataImage(**{**values, "finalized_features": {"metadata.version": level}})


def _content(request: AssignReplicasToDirsRequest) -> Asked:
    return [
        (directory.id, topic.topic_id, each.partition_index)
        for directory in request.directories
        for topic in directory.topics
        for each in topic.partitions
    ]


def test_what_a_broker_chose_is_told_together_a_tenth_of_a_second_later() -> None:
    broker = Broker()
    broker.put(0, "t", 0, 2)
    broker.put(1, "t", 1)
    broker.put(1, "u", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY] * 3})
    assert broker.advance(50) == []
    broker.publish({"t": [UNASSIGNED_DIRECTORY] * 3, "u": [FIRST]})
    assert broker.advance(49) == []
    t, u = id_of("t"), id_of("u")
    assert broker.advance(1) == [[(FIRST, t, 0), (FIRST, t, 2), (SECOND, t, 1), (SECOND, u, 0)]]
    broker.reply()
    broker.publish({"t": [FIRST, SECOND, FIRST], "u": [SECOND]})
    assert broker.advance(200_000) == []


def test_replicas_of_before_directories_are_told_once_even_by_a_broker_of_one() -> None:
    broker = Broker((FIRST,))
    broker.put(0, "t", 0)
    broker.publish({"t": [MIGRATING_DIRECTORY]}, level=16)
    assert broker.advance(1_000) == []
    broker.publish({"t": [MIGRATING_DIRECTORY]}, level=17)
    assert broker.advance(1_000) == [[(FIRST, id_of("t"), 0)]]


def test_request_has_2_250_replicas_at_most_and_the_next_waits_for_its_answer() -> None:
    broker = Broker()
    broker.put(1, "t", *range(2_300))
    broker.publish({"t": [UNASSIGNED_DIRECTORY] * 2_300})
    assert [len(each) for each in broker.advance(5_000)] == [ASSIGNMENTS_MAX]
    broker.reply()
    assert [len(each) for each in broker.advance(0)] == [50]


def test_what_no_controller_decided_is_asked_again_after_a_pause_that_doubles() -> None:
    broker = Broker()
    broker.put(1, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    broker.advance(100)
    pauses = []
    for _ in range(9):
        broker.reply(ErrorCode.NOT_CONTROLLER)
        due_ms = broker.assignments.deadline_ms()
        assert due_ms is not None
        pauses.append(due_ms - broker.now_ms)
        assert broker.advance(pauses[-1]) == [[(SECOND, id_of("t"), 0)]]
    assert pauses == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]
    assert len(broker.advance(130_000)) == 1, "no answer came within two minutes"
    broker.reply()
    assert broker.advance(200_000) == []
    broker.put(0, "u", 0)
    broker.publish({"t": [SECOND], "u": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(100) == [[(FIRST, id_of("u"), 0)]]
    broker.reply(ErrorCode.NOT_CONTROLLER)
    assert broker.assignments.deadline_ms() == broker.now_ms + 100, "as after the first failure"


def test_late_answer_to_a_request_that_was_given_up_says_nothing_of_the_next() -> None:
    broker = Broker()
    broker.put(1, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert len(broker.advance(100)) == 1
    late = broker.answered
    assert len(broker.advance(130_000)) == 1, "no answer came within two minutes"
    late(AssignReplicasToDirsResponse(error_code=ErrorCode.NOT_CONTROLLER), broker.now_ms)
    assert broker.advance(10_000) == [], "the second request is in flight"


def test_refused_replicas_are_asked_again_and_those_that_are_gone_are_not() -> None:
    broker = Broker()
    broker.put(1, "t", 0, 1)
    broker.put(0, "u", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY] * 2, "u": [UNASSIGNED_DIRECTORY]})
    broker.advance(100)
    broker.reply(ErrorCode.UNKNOWN_TOPIC_ID, 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY, SECOND]})
    assert broker.advance(100) == [[(SECOND, id_of("t"), 0)]]


def test_replica_whose_log_comes_late_is_told_of_when_it_is_there() -> None:
    broker = Broker()
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(1_000) == []
    broker.put(1, "t", 0)
    broker.assignments.tick(broker.now_ms, 0)
    assert broker.advance(100) == [[(SECOND, id_of("t"), 0)]]


def test_log_that_comes_when_the_replica_has_moved_away_is_not_told_of() -> None:
    broker = Broker()
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    moved = image_of({"t": [partition_image(0, leader=2, replicas=(2,))]})
    broker.assignments.published(MetadataDelta.between(broker.image, moved), broker.now_ms)
    broker.put(1, "t", 0)
    broker.assignments.tick(broker.now_ms, 0)
    assert broker.advance(1_000) == []


def test_answers_to_what_nobody_asked_change_nothing() -> None:
    broker = Broker()
    broker.put(1, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    broker.advance(100)
    stranger = ResponseTopicData(
        topic_id=id_of("x"), partitions=[ResponsePartitionData(partition_index=5)]
    )
    directories = [ResponseDirectoryData(id=SECOND, topics=[stranger])]
    broker.answer(AssignReplicasToDirsResponse(directories=directories))
    assert broker.advance(100) == [[(SECOND, id_of("t"), 0)]], "nothing was said of it"
    broker.reply()
    broker.reply()
    assert broker.advance(200_000) == []


def test_target_of_a_move_is_told_instead_of_the_logs_directory_until_the_move_is_over() -> None:
    broker, name, t = Broker(), TopicPartition("t", 0), id_of("t")
    broker.put(0, "t", 0)
    broker.publish({"t": [FIRST]})
    assert broker.advance(1_000) == []
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    assert broker.advance(100) == [[(SECOND, t, 0)]]
    assert not broker.assignments.is_assigned(name, str(SECOND)), "asked, but not answered"
    broker.reply()
    broker.publish({"t": [SECOND]})
    assert broker.assignments.is_assigned(name, str(SECOND))
    assert broker.advance(1_000) == [], "the log is still in the first directory"
    broker.assignments.release(t, 0, broker.now_ms)
    assert broker.advance(100) == [[(FIRST, t, 0)]], "a cancelled move is undone"


def test_report_from_before_a_move_is_awaited_and_not_repeated() -> None:
    """A broker that died in a move reports its log's directory at the start, then moves again."""
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [SECOND]})
    assert broker.advance(100) == [[(FIRST, id_of("t"), 0)]]
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    assert not broker.assignments.is_assigned(name, str(SECOND)), "it may still be changed"
    broker.reply(ErrorCode.NOT_CONTROLLER)
    assert broker.advance(60_000) == []
    assert broker.assignments.is_assigned(name, str(SECOND))


def test_move_goes_on_when_the_metadata_come_before_the_answer() -> None:
    """Only the metadata are awaited; no further change would follow the answer."""
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [FIRST]})
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    broker.advance(100)
    broker.publish({"t": [SECOND]})
    assert broker.assignments.is_assigned(name, str(SECOND))


def test_target_of_a_move_that_was_cancelled_at_once_is_not_told() -> None:
    """The log's own directory was on its way to the controller all the time."""
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(100) == [[(FIRST, id_of("t"), 0)]]
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    broker.assignments.release(id_of("t"), 0, broker.now_ms)
    broker.reply()
    assert broker.advance(60_000) == []
    broker.publish({"t": [FIRST]})
    assert broker.advance(60_000) == []


def test_move_of_a_deleted_topic_is_never_assigned_and_its_end_is_not_told() -> None:
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [FIRST]})
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    broker.publish({})
    assert not broker.assignments.is_assigned(name, str(SECOND))
    broker.assignments.release(id_of("t"), 0, broker.now_ms)
    assert broker.advance(60_000) == []


def test_directory_that_the_metadata_has_meanwhile_is_not_sent_again() -> None:
    broker = Broker()
    broker.put(1, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert len(broker.advance(100)) == 1
    broker.publish({"t": [SECOND]})
    broker.reply(ErrorCode.REQUEST_TIMED_OUT)
    assert broker.advance(60_000) == []


def test_target_of_a_move_replaces_the_directory_of_a_failed_request() -> None:
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(100) == [[(FIRST, id_of("t"), 0)]]
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    due_ms = broker.assignments.deadline_ms()
    assert due_ms is not None
    assert due_ms > broker.now_ms + 100_000, "the response to the first request is awaited"
    broker.reply(ErrorCode.NOT_CONTROLLER)
    assert broker.advance(10_000) == [[(SECOND, id_of("t"), 0)]]


def test_directory_of_a_damaged_log_is_sent_as_well() -> None:
    """Its replica is offline until the log is repaired, there and nowhere else."""
    broker = Broker()
    broker.directories[1].damaged[TopicPartition("t", 0)] = object()
    broker.publish({"t": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(100) == [[(SECOND, id_of("t"), 0)]]


def test_levels_without_directories_have_nothing_to_assign() -> None:
    broker, name = Broker(), TopicPartition("t", 0)
    broker.put(0, "t", 0)
    broker.publish({"t": [MIGRATING_DIRECTORY]}, level=10)
    broker.assignments.assign(name, str(SECOND), broker.now_ms)
    assert broker.assignments.is_assigned(name, str(SECOND))
    broker.assignments.release(id_of("t"), 0, broker.now_ms)
    assert broker.advance(60_000) == []

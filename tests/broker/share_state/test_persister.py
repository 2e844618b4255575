"""The client of share coordinators: where calls go, how often, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.inter_broker import BrokerRequests
from kraft_wire.broker.share_persister import (
    InitialShareState,
    PersisterResult,
    SharePartitionKey,
    SharePartitionState,
    ShareStateWrite,
)
from kraft_wire.broker.share_state.calls import CallKind, StateCall, StateCallback
from kraft_wire.broker.share_state.persister import CoordinatedPersister
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import LeaderEpoch, Offset, Uuid
from kraft_wire.node.links.broker_links import BrokerLinks
from kraft_wire.node.outputs import Connect, SendBytes
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.wire.generated import (
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.delete_share_group_state import DeleteShareGroupStateRequest
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.error_code import ErrorCode as E
from kraft_wire.wire.generated.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
)
from kraft_wire.wire.generated.read_share_group_state import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
)
from kraft_wire.wire.generated.read_share_group_state_summary import (
    ReadShareGroupStateSummaryResponse,
)
from kraft_wire.wire.generated.write_share_group_state import (
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from kraft_wire.wire.message import DecodeLimits
from tests.broker.share_state.sharing import STATE_TOPIC, Sharing, batch
from tests.broker.small_broker import (
    LISTENER,
    broker_image,
    image_of,
    partition_image,
    small_broker,
)
from tests.node.far_side import answer, offer, requests_of

TOPIC_ID = Uuid(b"0123456789abcdef")
HERE, THERE, ELSEWHERE = 1, 2, 3
DONE = PersisterResult(E.NONE)


class MiddleChance:
    """Chance that is always in the middle: pauses have no jitter."""

    def below(self, bound: int) -> int:
        return bound // 2


def image(leader: int | None) -> MetadataImage:
    """Metadata in which one broker coordinates everything; None: there is no state topic."""
    topics = {"t": [partition_image(0)]}
    if leader is not None:
        topics[STATE_TOPIC] = [partition_image(0, leader=leader, replicas=(1, 2, 3))]
    return image_of(topics, [broker_image(each) for each in (HERE, THERE, ELSEWHERE)])


def key(partition: int = 0, group: str = "g") -> SharePartitionKey:
    return SharePartitionKey(group, TOPIC_ID, partition)


def write(start: int, complete: int = 0, *batches: Any) -> ShareStateWrite:
    return ShareStateWrite(3, LeaderEpoch(5), Offset(start), complete, batches)


class Asking:
    """A persister of broker 1, with a clock and what its own coordinator is asked."""

    def __init__(self, leader: int | None = HERE) -> None:
        self.image = image(leader)
        self.now_ms = 0
        self.created_ms: list[int] = []
        self.here: list[tuple[StateCall, StateCallback]] = []
        self.results: list[Mapping[SharePartitionKey, PersisterResult]] = []
        self.persister = CoordinatedPersister(
            HERE,
            lambda: self.image,
            MiddleChance(),
            lambda call, at, then: self.here.append((call, then)),
            self.created_ms.append,
        )

    @property
    def at(self) -> ClockReading:
        return ClockReading(self.now_ms, 7_000 + self.now_ms)

    def note(self, results: Mapping[SharePartitionKey, PersisterResult], at: ClockReading) -> None:
        assert at == self.at
        self.results.append(dict(results))

    def write(self, *writes: tuple[SharePartitionKey, ShareStateWrite]) -> None:
        self.persister.write(dict(writes), self.at, self.note)

    def answer(self, result: PersisterResult) -> StateCall:
        """Have this broker's coordinator answer its oldest call."""
        call, then = self.here.pop(0)
        then(result, self.at)
        return call

    def requests(self, broker_id: int = THERE) -> BrokerRequests:
        return self.persister.client().destinations()[broker_id]

    def move(self, leader: int | None) -> None:
        """Have another broker coordinate."""
        self.image = image(leader)
        self.persister.published(None, self.now_ms)  # type: ignore[arg-type]  # not looked at
        self.persister.tick(*self.at)

    def pass_until_due(self) -> int:
        """Let time pass until something is due; return how much."""
        due_ms = self.persister.deadline_ms()
        assert due_ms is not None
        passed_ms, self.now_ms = due_ms - self.now_ms, due_ms
        self.persister.tick(*self.at)
        return passed_ms


def test_a_call_to_this_broker_takes_no_link() -> None:
    asking = Asking()
    asking.write((key(0), write(4)), (key(1), write(5)))
    assert [call for call, _ in asking.here] == [
        StateCall(CallKind.WRITE, key(0), write(4)),
        StateCall(CallKind.WRITE, key(1), write(5)),
    ]
    asking.answer(DONE)
    assert asking.results == []
    asking.answer(DONE)
    assert asking.results == [{key(0): DONE, key(1): DONE}]
    assert asking.persister.client().destinations() == {}


def test_nothing_is_answered_at_once() -> None:
    asking = Asking()
    asking.write()
    assert asking.results == [{}]


@pytest.mark.parametrize(
    "error",
    [
        E.COORDINATOR_NOT_AVAILABLE,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.NOT_COORDINATOR,
        E.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_call_is_made_five_times_with_growing_pauses(error: E) -> None:
    """932-COORD-17."""
    asking = Asking()
    asking.write((key(), write(4)))
    pauses_ms = []
    for _ in range(4):
        asking.answer(PersisterResult(error, "words"))
        pauses_ms.append(asking.pass_until_due())
    asking.answer(PersisterResult(error, "words"))
    assert pauses_ms == [2_000, 4_000, 8_000, 16_000]
    words = "Error in write state RPC. Exhausted max retries to complete write state RPC without"
    assert asking.results == [{key(): PersisterResult(error, f"{words} success.")}]
    assert asking.persister.deadline_ms() is None


def test_a_success_after_a_pause_is_a_success() -> None:
    asking = Asking()
    asking.write((key(), write(4)))
    asking.answer(PersisterResult(E.NOT_COORDINATOR))
    asking.pass_until_due()
    asking.answer(DONE)
    assert asking.results == [{key(): DONE}]


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        (
            PersisterResult(E.FENCED_LEADER_EPOCH, "old"),
            E.FENCED_LEADER_EPOCH,
            "Error in write state RPC. old",
        ),
        (
            PersisterResult(E.FENCED_STATE_EPOCH),
            E.FENCED_STATE_EPOCH,
            "Error in write state RPC. The share coordinator rejected the request because the"
            " share-group state epoch did not match.",
        ),
        (
            PersisterResult(E.INVALID_REQUEST, "Write operation"),
            E.INVALID_REQUEST,
            "Error in write state RPC. Write operation",
        ),
    ],
)
def test_other_errors_are_handed_back_at_once(given: PersisterResult, error: E, words: str) -> None:
    """932-COORD-16: callers translate them for clients."""
    asking = Asking()
    asking.write((key(), write(4)))
    asking.answer(given)
    assert asking.results == [{key(): PersisterResult(error, words)}]


def test_a_missing_topic_is_created_and_the_call_made_once_it_is_there() -> None:
    asking = Asking(None)
    asking.write((key(), write(4)))
    assert (asking.created_ms, asking.here) == ([0], [])
    asking.now_ms = 30
    asking.move(HERE)
    assert len(asking.here) == 1
    asking.answer(DONE)
    assert asking.results == [{key(): DONE}]


def test_a_coordinator_that_is_never_found_is_an_error() -> None:
    asking = Asking(-1)
    asking.write((key(), write(4)))
    assert [asking.pass_until_due() for _ in range(4)] == [2_000, 4_000, 8_000, 16_000]
    words = "Exhausted max retries to find coordinator without success."
    result = PersisterResult(E.COORDINATOR_NOT_AVAILABLE, f"Error in find coordinator. {words}")
    assert asking.results == [{key(): result}]
    assert asking.created_ms == []


def test_another_coordinator_ends_the_pause() -> None:
    asking = Asking()
    asking.write((key(), write(4)))
    asking.answer(PersisterResult(E.NOT_COORDINATOR))
    asking.move(HERE)
    assert asking.here == []
    asking.move(THERE)
    assert isinstance(asking.requests().request(1, 0), WriteShareGroupStateRequest)


def answered(request: WriteShareGroupStateRequest, error: int = E.NONE) -> Any:
    module = write_share_group_state
    return WriteShareGroupStateResponse(
        results=[
            module.WriteStateResult(
                topic_id=topic.topic_id,
                partitions=[
                    module.PartitionResult(partition=each.partition, error_code=error)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_calls_to_another_broker_wait_for_the_request_in_flight() -> None:
    asking = Asking(THERE)
    asking.write((key(0), write(4, 2, batch(4, 5, 2, 1))))
    requests = asking.requests()
    first = requests.request(1, 0)
    assert isinstance(first, WriteShareGroupStateRequest)
    (topic,) = first.topics
    (part,) = topic.partitions
    assert (first.group_id, topic.topic_id, part.partition) == ("g", TOPIC_ID, 0)
    assert (part.state_epoch, part.leader_epoch, part.start_offset) == (3, 5, 4)
    assert part.delivery_complete_count == 2
    (state,) = part.state_batches
    assert (state.first_offset, state.last_offset) == (4, 5)
    assert (state.delivery_state, state.delivery_count) == (2, 1)
    asking.write((key(0), write(5)), (key(1), write(6)), (key(0, "h"), write(7)))
    asking.write((key(0), write(8)))
    assert requests.request(1, 0) is None
    requests.answered(answered(first), *asking.at)
    assert asking.results == [{key(0): DONE}]
    second = requests.request(1, 0)
    assert isinstance(second, WriteShareGroupStateRequest)
    starts = [each.start_offset for topic in second.topics for each in topic.partitions]
    assert (second.group_id, starts) == ("g", [5, 6]), "one group, a share partition once"
    requests.answered(answered(second), *asking.at)
    third = requests.request(1, 0)
    assert isinstance(third, WriteShareGroupStateRequest)
    assert third.group_id == "h"
    requests.answered(answered(third), *asking.at)
    fourth = requests.request(1, 0)
    assert isinstance(fourth, WriteShareGroupStateRequest)
    assert fourth.topics[0].partitions[0].start_offset == 8


def test_a_request_has_a_limited_number_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kraft_wire.broker.share_state.coordinator_queue._CALLS_MAX", 2)
    asking = Asking(THERE)
    asking.write(*((key(number), write(number)) for number in range(5)))
    requests, asked = asking.requests(), []
    while (request := requests.request(1, 0)) is not None:
        assert isinstance(request, WriteShareGroupStateRequest)
        asked.append([part.partition for topic in request.topics for part in topic.partitions])
        requests.answered(answered(request), *asking.at)
    assert asked == [[0, 1], [2, 3], [4]]
    assert asking.results == [{key(number): DONE for number in range(5)}]


def test_a_request_that_gets_no_response_is_repeated() -> None:
    asking = Asking(THERE)
    asking.write((key(), write(4)))
    for pause_ms in (2_000, 4_000, 8_000, 16_000):
        assert asking.requests().request(1, 0) is not None
        asking.requests().failed(*asking.at)
        assert asking.requests().request(1, 0) is None
        assert asking.pass_until_due() == pause_ms
    assert asking.requests().request(1, 0) is not None
    asking.requests().failed(*asking.at)
    assert asking.results[0][key()].error == E.NETWORK_EXCEPTION


def test_queued_calls_move_with_their_coordinator() -> None:
    asking = Asking(THERE)
    asking.write((key(0), write(4)))
    asking.requests().request(1, 0)
    asking.write((key(1), write(5)))
    asking.move(ELSEWHERE)
    moved = asking.requests(ELSEWHERE).request(1, 0)
    assert isinstance(moved, WriteShareGroupStateRequest)
    assert moved.topics[0].partitions[0].partition == 1


def test_an_error_of_a_later_release_is_an_unexpected_error() -> None:
    asking = Asking(THERE)
    asking.write((key(), write(4)))
    request = asking.requests().request(1, 0)
    assert isinstance(request, WriteShareGroupStateRequest)
    asking.requests().answered(answered(request, 4_711), *asking.at)
    assert asking.results[0][key()].error == E.UNKNOWN_SERVER_ERROR


def test_a_partition_that_a_response_leaves_out_is_an_error() -> None:
    asking = Asking(THERE)
    asking.write((key(), write(4)))
    asking.requests().request(1, 0)
    asking.requests().answered(WriteShareGroupStateResponse(), *asking.at)
    assert asking.results[0][key()].error == E.UNKNOWN_SERVER_ERROR


def test_a_repeated_write_does_not_bring_an_earlier_start_offset_back() -> None:
    """932-COORD-17: a later write succeeded meanwhile."""
    asking = Asking()
    asking.write((key(), write(4, 1, batch(4, 4, 2, 1))))
    asking.write((key(), write(9, 3)))
    asking.answer(PersisterResult(E.COORDINATOR_NOT_AVAILABLE))
    asking.answer(DONE)
    asking.pass_until_due()
    repeated = asking.answer(DONE)
    assert repeated.argument == write(9, 3, batch(4, 4, 2, 1))
    assert [list(each.values()) for each in asking.results] == [[DONE], [DONE]]


def test_what_a_read_finds() -> None:
    asking = Asking(THERE)
    asking.persister.read({key(): LeaderEpoch(6)}, asking.at, asking.note)
    request = asking.requests().request(1, 0)
    assert isinstance(request, ReadShareGroupStateRequest)
    assert request.topics[0].partitions[0].leader_epoch == 6
    module = read_share_group_state
    part = module.PartitionResult(
        state_epoch=2,
        start_offset=5,
        state_batches=[
            module.StateBatch(first_offset=5, last_offset=6, delivery_state=4, delivery_count=2)
        ],
    )
    result = module.ReadStateResult(topic_id=TOPIC_ID, partitions=[part])
    asking.requests().answered(ReadShareGroupStateResponse(results=[result]), *asking.at)
    state = SharePartitionState(2, LeaderEpoch(6), Offset(5), -1, [batch(5, 6, 4, 2)])
    assert asking.results == [{key(): PersisterResult(E.NONE, None, state)}]


def test_what_a_summary_finds() -> None:
    asking = Asking(THERE)
    asking.persister.read_summary({key(): LeaderEpoch(-1)}, asking.at, asking.note)
    assert asking.requests().request(1, 0) is not None
    module = read_share_group_state_summary
    part = module.PartitionResult(
        state_epoch=2, leader_epoch=3, start_offset=5, delivery_complete_count=1
    )
    result = module.ReadStateSummaryResult(topic_id=TOPIC_ID, partitions=[part])
    asking.requests().answered(ReadShareGroupStateSummaryResponse(results=[result]), *asking.at)
    state = SharePartitionState(2, LeaderEpoch(3), Offset(5), 1)
    assert asking.results == [{key(): PersisterResult(E.NONE, None, state)}]


def test_states_begin_and_end_at_another_broker() -> None:
    asking = Asking(THERE)
    asking.persister.initialize({key(): InitialShareState(4, Offset(-1))}, asking.at, asking.note)
    asking.persister.delete([key(1)], asking.at, asking.note)
    begun = asking.requests().request(1, 0)
    assert isinstance(begun, InitializeShareGroupStateRequest)
    part = begun.topics[0].partitions[0]
    assert (part.partition, part.state_epoch, part.start_offset) == (0, 4, -1)
    asking.requests().failed(*asking.at)
    ended = asking.requests().request(1, 0)
    assert isinstance(ended, DeleteShareGroupStateRequest)
    assert ended.topics[0].partitions[0].partition == 1


def test_a_node_persists_through_its_own_coordinator() -> None:
    node = Sharing(SimFileSystem(), is_in_use=False)
    found: list[Mapping[SharePartitionKey, PersisterResult]] = []
    at = ClockReading(node.now_ms, node.wall_ms)
    persister = node.node.broker.share_persister
    persister.initialize(
        {node.key(0): InitialShareState(1, Offset(3))}, at, lambda results, _: found.append(results)
    )
    node.send(DescribeClusterRequest(), 0)
    assert found == [{node.key(0): DONE}]
    assert node.summary().start_offset == 3


class Linked:
    """Broker 1 with the links of its persister to broker 2."""

    def __init__(self, versions: dict[str, list[int]]) -> None:
        self.broker = small_broker(image(THERE), source=NodeSettings({}))
        self.persister = self.broker.share_persister
        self.versions = {"18": [0, 4], **versions}
        self.at = ClockReading(5_000, 0)
        self.lines: list[str] = []
        self.links = BrokerLinks(
            self.broker,
            self.broker.inter_broker_clients[-1],
            LISTENER,
            lambda: 11,
            count(1),
            DecodeLimits(),
            lambda name, **fields: self.lines.append(name),
        )

    def pump(self) -> list[tuple[Any, Any]]:
        """Return the requests that leave now, connecting and telling versions on the way."""
        self.links.pump(*self.at)
        found: list[tuple[Any, Any]] = []
        outputs = self.links.take_outputs()
        while outputs:
            first, outputs = outputs[0], outputs[1:]
            if isinstance(first, Connect):
                self.link = first.link_id
                self.links.link_up(self.link, *self.at)
            elif isinstance(first, SendBytes):
                ((header, request),) = requests_of([first])
                if isinstance(request, ApiVersionsRequest):
                    frame = answer(header, offer(self.versions))
                    self.links.link_frame(self.link, frame, *self.at)
                else:
                    found.append((header, request))
            outputs += self.links.take_outputs()
        return found


@pytest.mark.parametrize(("newest", "complete"), [(1, 6), (0, -1)])
def test_a_call_leaves_over_a_link_in_the_newest_version_of_both(
    newest: int, complete: int
) -> None:
    """932-COORD-15: the count of completed deliveries does not reach a broker without it."""
    side = Linked({"85": [0, newest]})
    found: list[Any] = []
    side.persister.write({key(): write(4, 6)}, side.at, lambda results, _: found.append(results))
    ((header, request),) = side.pump()
    assert (header.client_id, header.api_version) == ("Persister-client-1", newest)
    assert request.topics[0].partitions[0].delivery_complete_count == complete
    side.links.link_frame(side.link, answer(header, answered(request)), *side.at)
    assert found == [{key(): DONE}]


def test_a_call_is_repeated_after_a_broken_link() -> None:
    """932-COORD-17."""
    side = Linked({"85": [0, 1]})
    found: list[Any] = []
    side.persister.write({key(): write(4, 6)}, side.at, lambda results, _: found.append(results))
    assert len(side.pump()) == 1
    side.links.link_down(side.link, *side.at)
    assert side.pump() == []
    due_ms = side.broker.deadline_ms()
    assert due_ms is not None
    side.at = ClockReading(due_ms, due_ms)
    side.broker.tick(*side.at)
    ((header, request),) = side.pump()
    side.links.link_frame(side.link, answer(header, answered(request)), *side.at)
    assert found == [{key(): DONE}]

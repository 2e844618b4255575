"""What a broker hears after it has ended, and what one with a single directory need not say."""

import pytest

from kraft_wire.metadata.directory_ids import UNASSIGNED_DIRECTORY
from kraft_wire.node.registration.broker_lifecycle import BrokerState
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatResponse
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationResponse
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.node.test_broker_lifecycle import GO, Life
from tests.node.test_directory_assignments import FIRST, Broker, id_of


@pytest.mark.parametrize(
    "answer",
    [
        BrokerRegistrationResponse(broker_epoch=77),
        BrokerRegistrationResponse(error_code=ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False),
        BrokerHeartbeatResponse(error_code=ErrorCode.STALE_BROKER_EPOCH),
    ],
)
def test_answer_that_comes_after_the_end_changes_nothing(answer: object) -> None:
    life = Life()
    life.say()
    life.lifecycle.begin_stop(life.now_ms)
    assert life.lifecycle.state is BrokerState.SHUTTING_DOWN
    lines, due_ms = [*life.lines], life.lifecycle.deadline_ms()
    life.hear(answer)
    assert (life.lines, life.lifecycle.deadline_ms()) == (lines, due_ms)
    assert (life.lifecycle.broker_epoch, life.lifecycle.state) == (-1, BrokerState.SHUTTING_DOWN)
    assert not life.lifecycle.is_due(life.now_ms + 1_000_000)


def test_answer_that_lets_a_broker_go_ends_what_it_says() -> None:
    life = Life().running()
    life.lifecycle.begin_stop(life.now_ms)
    life.heartbeat()
    life.hear(GO)
    assert life.lifecycle.is_over
    assert not life.lifecycle.is_due(life.now_ms + 1_000_000)


def test_broker_of_one_directory_says_nothing_of_later_partitions() -> None:
    """The controller puts them into the only directory that there is."""
    broker = Broker((FIRST,))
    broker.put(0, "t", 0)
    broker.publish({"t": [FIRST]})
    broker.put(0, "u", 0)
    broker.publish({"t": [FIRST], "u": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(10_000) == []


def test_broker_of_two_directories_looks_at_later_partitions() -> None:
    broker = Broker()
    broker.put(0, "t", 0)
    broker.publish({"t": [FIRST]})
    broker.put(0, "u", 0)
    broker.publish({"t": [FIRST], "u": [UNASSIGNED_DIRECTORY]})
    assert broker.advance(10_000) == [[(FIRST, id_of("u"), 0)]]

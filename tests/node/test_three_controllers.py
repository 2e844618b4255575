"""Three controllers as whole nodes: they elect, commit, fail over, and forget nothing committed."""

import pytest

from kraft_wire.metadata.image import BROKER_RESOURCE, MetadataImage
from kraft_wire.wire.generated.broker_heartbeat import BrokerHeartbeatRequest
from kraft_wire.wire.generated.describe_cluster import DescribeClusterRequest
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.controller.broker_cluster import registration
from tests.node.quorum import CLUSTER_ID, Answer, NodeQuorum

SET = 0


def set_config(quorum: NodeQuorum, node_id: int, value: int) -> Answer:
    """Set a cluster-wide broker config."""
    change = AlterableConfig(name="log.flush.interval.ms", config_operation=SET, value=str(value))
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name="", configs=[change]
    )
    return quorum.ask(node_id, IncrementalAlterConfigsRequest(resources=[resource]))


def error_of(answer: Answer) -> int:
    return int(answer.response.responses[0].error_code)


def config_of(image: MetadataImage) -> str | None:
    value = image.config(BROKER_RESOURCE, "").get("log.flush.interval.ms")
    assert value is None or isinstance(value, str)
    return value


def committed(quorum: NodeQuorum, value: int) -> None:
    """Set the config at whoever leads, and wait for the answer."""
    answer = set_config(quorum, quorum.elect(), value)
    quorum.until(lambda: answer.response is not None)
    assert error_of(answer) == ErrorCode.NONE


def configs(quorum: NodeQuorum) -> list[str | None]:
    """What every running node has committed, once they are level."""
    quorum.level()
    return [config_of(image) for image in quorum.images()]


def log_bytes(quorum: NodeQuorum, node_id: int) -> bytes:
    log = quorum.members[node_id].running.raft.log
    return b"".join(each.file.pread(each.size_bytes, 0) for each in log.segments)


def test_three_nodes_elect_one_and_commit_a_change_on_all() -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    assert configs(quorum) == ["1000"] * 3
    assert len({log_bytes(quorum, node_id) for node_id in quorum.voters}) == 1


def test_a_change_is_answered_when_a_majority_has_it_on_its_disks() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    quorum.advance(100)
    quorum.keeps_flushes_back = True
    answer = set_config(quorum, leader, 1_000)
    quorum.advance(200)
    assert answer.response is None
    assert config_of(quorum.members[leader].running.controller.image) == "1000", "decided by"
    assert config_of(quorum.members[leader].running.raft.committed.image) is None
    quorum.keeps_flushes_back = False
    for node_id in quorum.voters:
        quorum.flush(node_id)
    quorum.until(lambda: answer.response is not None)
    assert configs(quorum) == ["1000"] * 3


def test_changes_that_come_while_a_flush_runs_share_the_next_one() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    quorum.advance(100)
    quorum.keeps_flushes_back = True
    answers = [set_config(quorum, leader, value) for value in range(10)]
    member = quorum.members[leader]
    assert len(member.flushes) == 1
    quorum.flush(leader)
    assert len(member.flushes) == 1
    quorum.keeps_flushes_back = False
    for node_id in quorum.voters:
        quorum.flush(node_id)
    quorum.until(lambda: all(answer.response is not None for answer in answers))
    assert [error_of(answer) for answer in answers] == [ErrorCode.NONE] * 10
    assert configs(quorum) == ["9"] * 3


@pytest.mark.parametrize("is_graceful", [False, True])
def test_the_next_leader_has_every_committed_change(is_graceful: bool) -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    first = quorum.elect()
    (quorum.stop if is_graceful else quorum.kill)(first)
    second = quorum.elect()
    assert second != first
    assert config_of(quorum.members[second].running.raft.committed.image) == "1000"
    committed(quorum, 2_000)
    quorum.start(first)
    assert configs(quorum) == ["2000"] * 3
    assert quorum.leader == second


def test_a_graceful_stop_is_faster_than_an_election_timeout() -> None:
    quorum = NodeQuorum()
    first = quorum.elect()
    quorum.level()
    begun_ms = quorum.now_ms
    quorum.stop(first)
    quorum.elect()
    assert quorum.now_ms - begun_ms < 500


def test_whoever_does_not_lead_says_so() -> None:
    quorum = NodeQuorum()
    leader = quorum.elect()
    for node_id in quorum.voters:
        if node_id != leader:
            assert error_of(set_config(quorum, node_id, 1)) == ErrorCode.NOT_CONTROLLER


def test_a_leader_that_is_cut_off_answers_not_controller_and_forgets() -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    first = quorum.elect()
    quorum.cut = {first}
    answer = set_config(quorum, first, 2_000)
    assert config_of(quorum.members[first].running.controller.image) == "2000"
    quorum.until(lambda: answer.response is not None)
    assert error_of(answer) == ErrorCode.NOT_CONTROLLER
    assert config_of(quorum.members[first].running.controller.image) == "1000"
    committed(quorum, 3_000)
    quorum.cut = set()
    assert configs(quorum) == ["3000"] * 3


def unfenced_broker(quorum: NodeQuorum, leader: int) -> BrokerHeartbeatRequest:
    """Register broker 9, and return the heartbeat that unfenced it."""
    registered = quorum.ask(leader, registration(9, cluster_id=CLUSTER_ID))
    quorum.until(lambda: registered.response is not None)
    lives = BrokerHeartbeatRequest(
        broker_id=9,
        broker_epoch=registered.response.broker_epoch,
        current_metadata_offset=1 << 40,
    )
    unfenced = quorum.ask(leader, lives)
    quorum.until(lambda: unfenced.response is not None)
    assert not unfenced.response.is_fenced
    return lives


def test_what_was_decided_by_a_step_of_the_controllers_own_is_answered_once_that_is_committed() -> (
    None
):
    """A silent broker is fenced by a leader that is cut off: it is not told that it is."""
    quorum = NodeQuorum(settings={"broker.session.timeout.ms": "1000"})
    leader = quorum.elect()
    lives = unfenced_broker(quorum, leader)
    quorum.cut = {leader}
    quorum.advance(1_100)
    assert quorum.members[leader].running.controller.image.brokers[9].fenced, "decided by"
    lives.want_fence = True
    answer = quorum.ask(leader, lives)
    assert answer.response is None
    quorum.until(lambda: answer.response is not None)
    assert answer.response.error_code == ErrorCode.NOT_CONTROLLER
    assert not quorum.members[leader].running.controller.image.brokers[9].fenced


def lines_of(quorum: NodeQuorum, event: str) -> list[tuple[int, dict[str, object]]]:
    """Return each line of an event, with the node that wrote it."""
    return [
        (node_id, fields)
        for node_id, member in quorum.members.items()
        for name, fields in member.lines
        if name == event
    ]


def test_session_that_ends_without_a_heartbeat_is_one_line_of_the_active_controller() -> None:
    """The last millisecond of the timeout is still in time."""
    quorum = NodeQuorum(settings={"broker.session.timeout.ms": "1000"})
    leader = quorum.elect()
    lives = unfenced_broker(quorum, leader)
    assert lives.broker_epoch != lives.broker_id
    quorum.advance(900)
    quorum.ask(leader, lives)
    quorum.advance(1_000)
    assert lines_of(quorum, "broker_session_expired") == []
    quorum.advance(1)
    fields = {"broker": 9, "broker_epoch": lives.broker_epoch}
    fields |= {"silent_ms": 1_001, "session_timeout_ms": 1_000}
    assert lines_of(quorum, "broker_session_expired") == [(leader, fields)]
    quorum.advance(5_000)
    assert lines_of(quorum, "broker_session_expired") == [(leader, fields)]


def test_power_lost_by_all_keeps_what_was_committed() -> None:
    quorum = NodeQuorum()
    for round_number in range(3):
        committed(quorum, round_number)
        for node_id in quorum.voters:
            quorum.kill(node_id)
        for node_id in quorum.voters:
            quorum.start(node_id)
    quorum.elect()
    assert configs(quorum) == ["2"] * 3


def test_a_voter_whose_disk_is_lost_catches_up_with_the_log() -> None:
    quorum = NodeQuorum()
    committed(quorum, 1_000)
    victim = next(node_id for node_id in quorum.voters if node_id != quorum.elect())
    quorum.wipe(victim)
    committed(quorum, 2_000)
    quorum.start(victim)
    assert configs(quorum) == ["2000"] * 3


def test_an_idle_leader_writes_a_record_now_and_then() -> None:
    quorum = NodeQuorum()
    quorum.elect()
    quorum.advance(1_000)
    before = min(quorum.ends())
    quorum.advance(5_000)
    assert 9 <= min(quorum.ends()) - before <= 11


@pytest.mark.parametrize(("asked", "told"), [(False, -(1 << 31)), (True, 8096)])
def test_controller_tells_operations_to_who_asks(asked: bool, told: int) -> None:
    quorum = NodeQuorum()
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=asked)
    answer = quorum.ask(quorum.elect(), request)
    quorum.until(lambda: answer.response is not None)
    assert answer.response.error_code == ErrorCode.NONE
    assert answer.response.cluster_authorized_operations == told

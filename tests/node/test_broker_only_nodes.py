"""Nodes that are only brokers, beside controllers in nodes of their own."""

from typing import Any

from kraft_wire.metadata.features import METADATA_VERSION, SUPPORTED_FEATURES
from kraft_wire.metadata.image import NO_LEADER, BrokerImage, MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.api_versions import ApiVersionsRequest
from kraft_wire.wire.generated.broker_registration import BrokerRegistrationRequest, Feature
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.generated.fetch import FetchRequest
from kraft_wire.wire.generated.unregister_broker import UnregisterBrokerRequest
from kraft_wire.wire.generated.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.node.quorum import CLUSTER_ID, NodeQuorum, directory_id
from tests.node.test_combined_quorum import create, produce
from tests.node.test_three_controllers import committed

BROKER = 101


def quorum_with_broker(voters: tuple[int, ...] = (1, 2, 3), **settings: str) -> NodeQuorum:
    """Controllers, and a broker that runs."""
    quorum = NodeQuorum(voters, settings)
    quorum.elect()
    quorum.add_broker(BROKER)
    until_it_runs(quorum)
    return quorum


def until_it_runs(quorum: NodeQuorum) -> None:
    quorum.until(lambda: quorum.members[BROKER].serves_clients)
    quorum.level()


def image_of(quorum: NodeQuorum) -> MetadataImage:
    leader = quorum.elect()
    image: MetadataImage = quorum.members[leader].running.raft.committed.image
    return image


def broker_of(quorum: NodeQuorum) -> BrokerImage:
    return image_of(quorum).brokers[BROKER]


def test_broker_registers_runs_and_serves_what_controllers_elsewhere_decide() -> None:
    quorum = quorum_with_broker()
    broker = broker_of(quorum)
    assert (broker.fenced, broker.log_dirs) == (False, (directory_id(BROKER),))
    assert broker.broker_epoch == quorum.members[BROKER].running.broker_epoch
    assert broker.cordoned_log_dirs == (), "as release 4.3.1 says from metadata.version 30 on"
    assert create(quorum, BROKER, "t") == ErrorCode.NONE
    quorum.level()
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE
    node = quorum.members[BROKER].running
    assert not node.raft.replica.quorum.is_voter
    assert node.raft.replica.quorum.voters.latest.nodes.keys() == {1, 2, 3}


def test_clients_are_shown_of_what_is_forwarded_only_what_the_active_controller_serves() -> None:
    """KIP-590: the broker's own range and the controller's, of keys that only pass through."""
    quorum = quorum_with_broker((1,))
    controller = quorum.members[1].running.controller_apis

    def shown() -> dict[int, tuple[int, int]]:
        answer = quorum.ask(BROKER, ApiVersionsRequest(), 2, listener="PLAINTEXT")
        return {e.api_key: (e.min_version, e.max_version) for e in answer.response.api_keys}

    before = shown()
    assert (before[80], before[57]) == ((0, 1), (0, 2))
    controller.versions |= {80: (0, 0), 57: (1, 9), 1: (17, 18)}
    del controller.versions[64]
    quorum.members[BROKER].running.controller_apis.heartbeats.channels.close_all()
    quorum.advance(3_000)
    assert shown() == {
        key: {80: (0, 0), 57: (1, 2)}.get(key, range_)
        for key, range_ in before.items()
        if key != 64
    }


def test_broker_is_ready_within_a_few_heartbeats_of_10_ms() -> None:
    quorum = NodeQuorum((1,))
    quorum.elect()
    began_ms = quorum.now_ms
    quorum.add_broker(BROKER)
    until_it_runs(quorum)
    assert quorum.now_ms - began_ms < 100


def test_broker_outlives_the_active_controller_without_being_fenced() -> None:
    quorum = quorum_with_broker()
    assert create(quorum, BROKER, "t") == ErrorCode.NONE
    epoch = broker_of(quorum).broker_epoch
    for _ in range(3):
        leader = quorum.elect()
        quorum.kill(leader)
        quorum.advance(20_000)
        assert (broker_of(quorum).fenced, broker_of(quorum).broker_epoch) == (False, epoch)
        assert create(quorum, BROKER, f"after-{leader}") in (
            ErrorCode.NONE,
            ErrorCode.TOPIC_ALREADY_EXISTS,
        )
        quorum.start(leader)
    quorum.level()
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE


def test_stopped_broker_leads_nothing_is_fenced_and_comes_back_with_its_epoch() -> None:
    quorum = quorum_with_broker()
    assert create(quorum, BROKER, "t") == ErrorCode.NONE
    quorum.level()
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE
    before = broker_of(quorum)
    began_ms = quorum.now_ms
    quorum.stop(BROKER)
    assert quorum.now_ms - began_ms < 1_000
    gone, partition = broker_of(quorum), image_of(quorum).topics_by_name["t"].partitions[0]
    assert (gone.fenced, gone.in_controlled_shutdown) == (True, True)
    assert partition.leader == NO_LEADER
    mark = quorum.members[BROKER].fs.read("/data/.kafka_cleanshutdown")
    assert f'"brokerEpoch":{before.broker_epoch}'.encode() in mark
    quorum.start(BROKER)
    until_it_runs(quorum)
    again = broker_of(quorum)
    assert not again.fenced
    assert again.incarnation_id != before.incarnation_id
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE
    assert quorum.members[BROKER].running.broker.partitions["t", 0].log_end_offset == 2


def test_killed_broker_returns_once_its_former_session_is_over() -> None:
    quorum = quorum_with_broker()
    assert create(quorum, BROKER, "t") == ErrorCode.NONE
    quorum.level()
    quorum.kill(BROKER)
    began_ms = quorum.now_ms
    quorum.start(BROKER)
    until_it_runs(quorum)
    assert 6_000 < quorum.now_ms - began_ms < 20_000
    lines = [fields for name, fields in quorum.members[BROKER].lines if "failed" in name]
    assert {fields["error"] for fields in lines} == {"DUPLICATE_BROKER_REGISTRATION"}
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE


def test_broker_that_nobody_registers_gives_up_after_a_minute_with_one_reason() -> None:
    quorum = NodeQuorum((1, 2, 3))
    quorum.elect()
    quorum.cut.update((2, 3))
    quorum.advance(5_000)
    member = quorum.add_broker(BROKER)
    member.may_give_up = True
    began_ms = quorum.now_ms
    quorum.until(lambda: member.is_done, 70_000)
    assert 60_000 <= quorum.now_ms - began_ms < 60_100
    assert member.gave_up is not None
    assert "initial.broker.registration.timeout.ms" in member.gave_up


def test_stop_without_a_controller_waits_for_a_session_and_no_longer() -> None:
    quorum = quorum_with_broker()
    quorum.cut.update((1, 2, 3))
    began_ms = quorum.now_ms
    quorum.stop(BROKER)
    assert 9_000 <= quorum.now_ms - began_ms < 9_100


def test_stop_before_the_broker_runs_asks_nobody() -> None:
    quorum = NodeQuorum((1, 2, 3))
    quorum.elect()
    quorum.cut.update((2, 3))
    quorum.advance(5_000)
    quorum.add_broker(BROKER)
    began_ms = quorum.now_ms
    quorum.stop(BROKER)
    assert quorum.now_ms - began_ms < 100


def test_unregistered_broker_says_again_and_again_that_it_lives() -> None:
    """As release 4.3.1: only a restart registers it anew."""
    quorum = quorum_with_broker()
    leader = quorum.elect()
    gone = quorum.ask(leader, UnregisterBrokerRequest(broker_id=BROKER))
    quorum.until(lambda: gone.response is not None)
    quorum.advance(10_000)
    failed = [f for name, f in quorum.members[BROKER].lines if name == "broker_heartbeat_failed"]
    assert [each["error"] for each in failed][:3] == ["STALE_BROKER_EPOCH"] * 3
    assert BROKER not in image_of(quorum).brokers


def test_broker_replaced_by_what_a_former_life_said_last_registers_again() -> None:
    """4.3.1's goes on with heartbeats that are refused, until somebody restarts it."""
    quorum = quorum_with_broker()
    leader = quorum.elect()
    before = broker_of(quorum)
    quorum.cut.add(BROKER)
    quorum.until(lambda: broker_of(quorum).fenced)
    levels = [
        Feature(
            name=name, min_supported_version=each.min_level, max_supported_version=each.max_level
        )
        for name, each in SUPPORTED_FEATURES.items()
    ]
    said_last = BrokerRegistrationRequest(
        broker_id=BROKER,
        cluster_id=CLUSTER_ID,
        incarnation_id=Uuid(b"a former life..."),
        features=levels,
        log_dirs=[directory_id(BROKER)],
    )
    late = quorum.ask(leader, said_last)
    quorum.until(lambda: late.response is not None)
    assert late.response.error_code == ErrorCode.NONE
    quorum.cut.clear()
    quorum.until(lambda: not broker_of(quorum).fenced)
    after = broker_of(quorum)
    assert after.incarnation_id == before.incarnation_id
    assert after.broker_epoch > late.response.broker_epoch
    quorum.advance(10_000)
    assert create(quorum, BROKER, "t") == ErrorCode.NONE
    quorum.level()
    assert produce(quorum, BROKER, "t") == ErrorCode.NONE


def test_broker_renews_its_registration_once_directories_have_ids() -> None:
    """KIP-858: a registration from below metadata.version 17 names no directory."""
    quorum = NodeQuorum((1,), levels={METADATA_VERSION: 16})
    leader = quorum.elect()
    quorum.add_broker(BROKER)
    until_it_runs(quorum)
    before = broker_of(quorum)
    assert before.log_dirs == ()
    update = FeatureUpdateKey(feature=METADATA_VERSION, max_version_level=17, upgrade_type=1)
    quorum.ask(leader, UpdateFeaturesRequest(timeout_ms=1_000, feature_updates=[update]))
    quorum.until(lambda: broker_of(quorum).log_dirs != ())
    after = broker_of(quorum)
    assert after.log_dirs == (directory_id(BROKER),)
    assert (after.broker_epoch, after.fenced) == (before.broker_epoch, False)


def test_late_broker_begins_with_a_snapshot_and_does_not_sync_what_it_follows() -> None:
    often = {"metadata.log.max.record.bytes.between.snapshots": "1500"}
    quorum = NodeQuorum((1, 2, 3), often)
    quorum.elect()
    for value in range(30):
        committed(quorum, value)
        quorum.advance(10)
    quorum.add_broker(BROKER)
    until_it_runs(quorum)
    node = quorum.members[BROKER].running
    assert node.raft.committed.loads_count > 0
    assert node.raft.log.unflushed_records > 0
    quorum.kill(BROKER)
    quorum.advance(10_000)
    quorum.start(BROKER)
    until_it_runs(quorum)


class HeldBack(NodeQuorum):
    """What the broker fetches is held back, from the moment on at which it knows who leads."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.held: list[tuple[int, int, bytes]] | None = []
        super().__init__(*args, **kwargs)

    def _send(self, node_id: int, link_id: int, data: bytes) -> list[int]:
        quorum = self.members[node_id].running.raft.replica.quorum
        is_fetch = int.from_bytes(data[4:6]) == FetchRequest.API_KEY
        if self.held is None or not is_fetch or quorum.leader_id < 0:
            return super()._send(node_id, link_id, data)
        self.held.append((node_id, link_id, data))
        return []

    def let_go(self) -> None:
        held, self.held = self.held or [], None
        for each in held:
            for node_id in self._send(*each):
                self.drain(node_id)


def test_broker_whose_snapshot_has_everything_waits_for_no_further_record() -> None:
    """It is installed before the leader says how much is committed, and then nothing comes."""
    silent = {
        "metadata.log.max.record.bytes.between.snapshots": "1",
        "metadata.max.idle.interval.ms": "0",
    }
    quorum = HeldBack((1,), silent)
    quorum.elect()
    quorum.add_broker(BROKER)
    quorum.advance(100)
    assert BROKER in image_of(quorum).brokers, "so the snapshot has its registration"
    quorum.let_go()
    until_it_runs(quorum)
    assert quorum.members[BROKER].running.raft.committed.loads_count > 0

"""What a controller elects by time alone: KIP-460's preferred leaders, and KIP-966's unclean ones.

The keys are Kafka's: `auto.leader.rebalance.enable` ("a background thread checks the distribution
of partition leaders at regular intervals"), `leader.imbalance.check.interval.seconds`,
`unclean.leader.election.interval.ms`.
"""

import pytest

from kraft_wire.controller.controller import Controller
from kraft_wire.controller.partition_changes import RECOVERING
from kraft_wire.controller.periodic_elections import PeriodicElections
from kraft_wire.metadata.image import NO_LEADER
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.remove_topic_record import RemoveTopicRecord
from tests.controller.broker_cluster import BrokerCluster

INTERVAL_MS = 300_000


def hold_elections(cluster: BrokerCluster, at_ms: int) -> list[int]:
    """Let the controller elect at a time and as long as it goes on; how much each step wrote."""
    cluster.now_ms = at_ms
    steps = []
    for _ in range(100):
        due_ms = cluster.controller.election_deadline_ms()
        if due_ms is None or due_ms > cluster.now_ms + 10:
            return steps
        cluster.now_ms = max(cluster.now_ms, due_ms)
        records = cluster.controller.election_records(cluster.now_ms)
        if records:
            steps.append(len(records))
            cluster.commit(records)
    raise AssertionError("a look that does not end")


def led_by_another(partitions: int, **properties: str) -> BrokerCluster:
    """Of a topic whose first replica is 2, in the ISR, while 3 leads."""
    cluster = BrokerCluster([2, 3], properties=properties)
    create_led_by_another(cluster, "t", partitions)
    return cluster


def create_led_by_another(cluster: BrokerCluster, name: str, partitions: int) -> None:
    cluster.create(name, *([2, 3],) * partitions)
    topic_id = cluster.loader.image.topics_by_name[name].topic_id
    moved = [
        PartitionChangeRecord(topic_id=topic_id, partition_id=number, leader=3)
        for number in range(partitions)
    ]
    cluster.commit([VersionedRecord(each, 2) for each in moved])


def leaders(cluster: BrokerCluster, name: str = "t") -> set[int]:
    return {each.leader for each in cluster.loader.image.topics_by_name[name].partitions.values()}


def begins_at_ms(controller: Controller) -> int:
    """When the first look is due, less its interval."""
    due_ms = controller.election_deadline_ms()
    assert due_ms is not None
    return due_ms - INTERVAL_MS


def test_leadership_elsewhere_returns_to_first_replica_after_interval_and_not_before() -> None:
    cluster = led_by_another(3)
    begin_ms = begins_at_ms(cluster.controller)
    assert hold_elections(cluster, begin_ms + INTERVAL_MS - 11) == []
    assert leaders(cluster) == {3}
    assert hold_elections(cluster, begin_ms + INTERVAL_MS) == [3]
    assert leaders(cluster) == {2}
    assert hold_elections(cluster, begin_ms + 2 * INTERVAL_MS + 100) == []


def test_partitions_of_a_big_topic_are_elected_in_steps_of_a_thousand() -> None:
    cluster = led_by_another(2_500)
    at_ms = begins_at_ms(cluster.controller) + INTERVAL_MS
    assert hold_elections(cluster, at_ms) == [1_000, 1_000, 500]
    assert cluster.now_ms - at_ms == 20, "heartbeats come between"
    assert leaders(cluster) == {2}


def test_topic_deleted_between_steps_is_passed_over() -> None:
    cluster = led_by_another(1_500)
    create_led_by_another(cluster, "u", 1)
    cluster.now_ms = begins_at_ms(cluster.controller) + INTERVAL_MS
    assert not cluster.controller.election_records(cluster.now_ms), "nobody is leaderless"
    assert len(cluster.controller.election_records(cluster.now_ms)) == 1_000
    gone = cluster.loader.image.topics_by_name["t"].topic_id
    cluster.commit([VersionedRecord(RemoveTopicRecord(topic_id=gone))])
    assert hold_elections(cluster, cluster.now_ms + 10) == [1]
    assert leaders(cluster, "u") == {2}


def test_topic_made_again_with_fewer_partitions_between_steps_is_passed_over() -> None:
    cluster = led_by_another(1_500)
    cluster.now_ms = begins_at_ms(cluster.controller) + INTERVAL_MS
    assert not cluster.controller.election_records(cluster.now_ms), "nobody is leaderless"
    assert len(cluster.controller.election_records(cluster.now_ms)) == 1_000
    gone = cluster.loader.image.topics_by_name["t"].topic_id
    cluster.commit([VersionedRecord(RemoveTopicRecord(topic_id=gone))])
    create_led_by_another(cluster, "t", 1)
    assert hold_elections(cluster, cluster.now_ms + 10) == []
    assert hold_elections(cluster, cluster.now_ms + INTERVAL_MS) == [1], "the next look finds it"


def test_first_replica_out_of_sync_is_not_elected() -> None:
    cluster = led_by_another(1)
    begin_ms = begins_at_ms(cluster.controller)
    cluster.pass_time(10_000, alive=[3])
    assert hold_elections(cluster, begin_ms + INTERVAL_MS) == []
    assert leaders(cluster) == {3}


def test_nothing_is_moved_where_rebalancing_is_switched_off() -> None:
    cluster = led_by_another(1, **{"auto.leader.rebalance.enable": "false"})
    assert hold_elections(cluster, begins_at_ms(cluster.controller) + INTERVAL_MS) == []
    assert leaders(cluster) == {3}


@pytest.mark.parametrize("is_allowed", [False, True])
def test_leaderless_partition_is_led_uncleanly_only_where_its_topic_allows_it(
    is_allowed: bool,
) -> None:
    cluster = BrokerCluster([2, 3])
    cluster.create("t", [2, 3])
    begin_ms = begins_at_ms(cluster.controller)
    cluster.pass_time(10_000, alive=[3])
    cluster.pass_time(10_000)
    assert leaders(cluster) == {NO_LEADER}
    assert cluster.partition().isr == (3,)
    assert cluster.register(2, 2).error_code == 0
    assert not cluster.heartbeat(2).is_fenced
    assert leaders(cluster) == {NO_LEADER}, "2 lacks what 3 acknowledged"
    cluster.configure("t", "unclean.leader.election.enable", str(is_allowed).lower())
    assert hold_elections(cluster, begin_ms + INTERVAL_MS) == [1] * is_allowed
    assert leaders(cluster) == ({2} if is_allowed else {NO_LEADER})
    assert (cluster.partition().leader_recovery_state == RECOVERING) is is_allowed


def test_unclean_election_leaves_partitions_that_are_led() -> None:
    cluster = led_by_another(3, **{"auto.leader.rebalance.enable": "false"})
    cluster.configure("t", "unclean.leader.election.enable", "true")
    before = cluster.loader.image.topics_by_name["t"].partitions
    assert hold_elections(cluster, begins_at_ms(cluster.controller) + INTERVAL_MS) == []
    assert cluster.loader.image.topics_by_name["t"].partitions == before


def test_controller_without_brokers_has_no_timer() -> None:
    assert BrokerCluster([]).controller.election_deadline_ms() is None


def test_controller_that_is_not_active_elects_nobody() -> None:
    cluster = led_by_another(1)
    cluster.controller.renounce(cluster.loader.image)
    assert cluster.controller.election_deadline_ms() is None


def test_controller_that_is_active_again_begins_a_look_anew() -> None:
    """Not where its former term ended: topics before that place have waited for long, too."""
    cluster = led_by_another(1_500)
    create_led_by_another(cluster, "a", 1)
    elections = PeriodicElections(NodeSettings())
    image, settings = cluster.loader.image, NodeSettings()

    def look(now_ms: int) -> list[int]:
        found = []
        while elections.deadline_ms(image) == now_ms:
            if records := elections.records(image, settings, now_ms):
                found.append(len(records))
        return found

    assert [topic.name for topic in image.topics()] == ["a", "t"]
    for begin_ms in (0, 7_000_000):
        elections.begin(begin_ms)
        assert look(begin_ms + INTERVAL_MS) == [1_000], "one of them is of the first topic"
        elections.end()
    elections.begin(20_000_000)
    assert sum(sum(look(20_000_000 + INTERVAL_MS + 10 * step)) for step in range(2)) == 1_501

"""Log lines derived from metadata: what a node and the active controller write of a change."""

from dataclasses import replace

import pytest

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import (
    NO_LEADER,
    TOPIC_RESOURCE,
    BrokerImage,
    FeatureRange,
    MetadataImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.model import Uuid
from kraft_wire.node.events.catalogue import EVENTS
from kraft_wire.node.events.metadata_events import MetadataEvents

ID = Uuid(bytes(15) + b"\7")


def image(*partitions: PartitionImage, fenced: bool = False) -> MetadataImage:
    topic = TopicImage("orders", ID, {each.partition: each for each in partitions})
    broker = BrokerImage(2, 9, Uuid(bytes(16)), {}, {}, fenced=fenced)
    return MetadataImage(
        offset=5,
        brokers={2: broker},
        topics_by_name={"orders": topic} if partitions else {},
        topic_names={ID: "orders"} if partitions else {},
    )


def partition(number: int, leader: int, isr: tuple[int, ...], epoch: int = 0) -> PartitionImage:
    return PartitionImage(number, (1, 2, 3), isr, leader, epoch, epoch)


def lines_of(
    before: MetadataImage, after: MetadataImage, *, node_id: int = 1, is_active: bool = False
) -> list[str]:
    lines: list[str] = []

    def report(name: str, **fields: object) -> None:
        lines.append(" ".join([name, *(f"{key}={value}" for key, value in fields.items())]))

    events = MetadataEvents(node_id, report)
    events.published(MetadataDelta.between(before, after), is_active=is_active)
    return lines


def test_leader_that_is_fenced_is_named_with_its_partitions() -> None:
    before = image(partition(0, 2, (1, 2, 3)))
    after = image(partition(0, 1, (1, 3), 1), fenced=True)
    assert lines_of(before, after) == [
        "broker_fenced broker=2 broker_epoch=9",
        "partition_leader_changed partition=orders-0 leader=1 before=2 leader_epoch=1 isr=1,3",
        "isr_shrunk partition=orders-0 isr=1,3 before=1,2,3 leader=1 leader_epoch=1",
    ]


def test_broker_that_asked_to_stop_is_stopped_and_not_reported_as_fenced() -> None:
    """The image is one of a stop in order: first the question, then the fencing."""
    running = image()
    stopping, stopped = (
        replace(running, brokers={2: replace(running.brokers[2], **changes)})
        for changes in (
            {"in_controlled_shutdown": True},
            {"in_controlled_shutdown": True, "fenced": True},
        )
    )
    assert lines_of(running, stopping) == ["broker_stopping broker=2 broker_epoch=9"]
    assert lines_of(stopping, stopped) == ["broker_stopped broker=2 broker_epoch=9"]
    assert EVENTS["broker_stopped"].level == "INFO"
    assert EVENTS["broker_fenced"].level == "WARN"


def test_new_broker_and_new_incarnation_are_registered_with_their_epochs() -> None:
    """A registration begins fenced; that is a line only where the broker was unfenced before."""
    fenced = image(fenced=True)
    without, unfenced = replace(fenced, brokers={}), image()
    again = replace(fenced, brokers={2: replace(fenced.brokers[2], broker_epoch=12)})
    assert lines_of(without, fenced) == ["broker_registered broker=2 broker_epoch=9"]
    assert lines_of(fenced, again) == ["broker_registered broker=2 broker_epoch=12"]
    assert lines_of(unfenced, again) == [
        "broker_registered broker=2 broker_epoch=12",
        "broker_fenced broker=2 broker_epoch=12",
    ]
    assert lines_of(without, unfenced) == [
        "broker_registered broker=2 broker_epoch=9",
        "broker_unfenced broker=2 broker_epoch=9",
    ]


def test_registration_that_the_same_incarnation_amends_is_no_line() -> None:
    """KIP-919: it registers again when its features or listeners changed."""
    before = image()
    amended = replace(before.brokers[2], features={"group.version": FeatureRange(0, 1)})
    after = replace(before, brokers={2: amended})
    assert MetadataDelta.between(before, after).changes_brokers
    assert lines_of(before, after) == []


def test_broker_that_may_lead_again_is_unfenced_with_its_id_and_epoch() -> None:
    assert lines_of(image(fenced=True), image()) == ["broker_unfenced broker=2 broker_epoch=9"]
    assert lines_of(image(), image()) == []


@pytest.mark.parametrize("fenced", [False, True])
def test_removed_registration_is_one_line_with_the_last_epoch(fenced: bool) -> None:
    before = image(fenced=fenced)
    other = replace(before.brokers[2], broker_id=5, broker_epoch=20)
    before = replace(before, brokers={2: before.brokers[2], 5: other})
    after = replace(before, brokers={5: other})
    assert lines_of(before, after) == ["broker_unregistered broker=2 broker_epoch=9"]


def test_partition_without_a_leader_is_offline_and_shows_no_negative_id() -> None:
    before, after = image(partition(0, 2, (2,))), image(partition(0, NO_LEADER, (2,), 1))
    (line,) = lines_of(before, after)
    assert line == "partition_offline partition=orders-0 leader=- before=2 leader_epoch=1 isr=2"


def test_partition_without_a_replica_here_is_the_active_controllers_to_log() -> None:
    before, after = image(partition(0, 2, (2,))), image(partition(0, 2, (2, 3), 1))
    assert lines_of(before, after, node_id=7) == []
    (line,) = lines_of(before, after, node_id=7, is_active=True)
    assert line.startswith("isr_expanded partition=orders-0 isr=2,3 before=2 ")


def test_thousand_partitions_are_twenty_lines_and_a_count() -> None:
    before = image(*(partition(each, 2, (2, 1)) for each in range(1_000)))
    after = image(*(partition(each, 1, (2, 1), 1) for each in range(1_000)))
    lines = lines_of(before, after)
    assert len(lines) == 21
    assert lines[-1] == "lines_omitted lines=partition_leader_changed count=980"


def test_topics_and_settings_are_logged_without_values() -> None:
    created = replace(
        image(partition(0, 2, (2,))), configs={(TOPIC_RESOURCE, "orders"): {"a.secret": "hidden"}}
    )
    (line,) = lines_of(image(), created)
    assert line == (
        "topic_created topic=orders topic_id=AAAAAAAAAAAAAAAAAAAABw partitions=1 replicas=3"
    )
    changed = replace(created, configs={(TOPIC_RESOURCE, "orders"): {"a.secret": "other"}})
    assert lines_of(created, changed) == [
        "settings_changed resource=topic resource_name=orders keys=a.secret"
    ]
    (line,) = lines_of(created, image())
    assert line == "topic_deleted topic=orders topic_id=AAAAAAAAAAAAAAAAAAAABw"


def test_first_image_is_one_line() -> None:
    (line,) = lines_of(MetadataImage(), image(partition(0, 2, (2,))))
    assert line == "metadata_loaded offset=5 epoch=-1 topics=1 brokers=1 fenced=0"


def test_unclean_election_is_told_once_and_not_its_end() -> None:
    """KIP-704: the new leader recovers until it has written that it is whole."""
    before = image(partition(0, 2, (2,)))
    unclean = PartitionImage(0, (1, 2, 3), (1,), 1, 1, 1, leader_recovery_state=1)
    found = lines_of(before, image(unclean))
    assert found[0].startswith("unclean_leader_elected partition=orders-0 leader=1 before=2")
    moved = PartitionImage(0, (1, 2, 3), (3,), 3, 2, 2, leader_recovery_state=1)
    found = lines_of(image(unclean), image(moved))
    assert found[0].startswith("partition_leader_changed partition=orders-0 leader=3 before=1")
    assert lines_of(image(unclean), image(partition(0, 1, (1,), 1))) == []


def test_numbers_and_members_of_a_topic_are_those_of_the_change() -> None:
    before = image(partition(0, 2, (2,)))
    after = image(*(partition(number, 2, (2,)) for number in range(3)))
    assert lines_of(before, after) == ["partitions_added topic=orders partitions=3 added=2"]
    assert lines_of(image(partition(0, 2, (2, 3))), image(partition(0, 2, (3, 2), 1))) == []
    mixed = [partition(0, 2, (2,)), PartitionImage(1, (1, 2), (2,), 2, 0, 0)]
    (line,) = lines_of(image(), image(*mixed))
    assert line.endswith("partitions=2 replicas=3"), "the most that a partition has"


def test_replica_that_moves_away_is_logged_by_the_node_that_had_it() -> None:
    before = image(PartitionImage(0, (1, 2), (1, 2), 2, 0, 0))
    after = image(PartitionImage(0, (3, 2), (1, 2), 2, 0, 1))
    lines = ["replicas_changed partition=orders-0 replicas=3,2 before=1,2"]
    for node_id, wanted in ((1, lines), (2, lines), (3, lines), (4, [])):
        assert lines_of(before, after, node_id=node_id) == wanted


def test_settings_that_stay_are_not_named_as_changed() -> None:
    before, after = (
        replace(image(partition(0, 2, (2,))), configs={(TOPIC_RESOURCE, "orders"): values})
        for values in ({"gone": "1", "same": "2", "set": "3"}, {"same": "2", "set": "4"})
    )
    assert lines_of(before, after) == [
        "settings_changed resource=topic resource_name=orders keys=gone,set"
    ]


def test_isr_that_swaps_a_member_is_neither_smaller_nor_larger() -> None:
    """The line of each case has both ISRs, and no case is reported as another one."""
    lines = {}
    for isr in ((1, 3), (1,), (1, 2, 3)):
        (line,) = lines_of(image(partition(0, 1, (1, 2))), image(partition(0, 1, isr, 4)))
        lines[isr] = line
    rest = "before=1,2 leader=1 leader_epoch=4"
    assert lines == {
        (1, 3): f"isr_changed partition=orders-0 isr=1,3 {rest}",
        (1,): f"isr_shrunk partition=orders-0 isr=1 {rest}",
        (1, 2, 3): f"isr_expanded partition=orders-0 isr=1,2,3 {rest}",
    }


def test_features_that_have_another_level_are_logged_and_no_others() -> None:
    """A feature without a level has level 0."""
    before, after = (
        replace(image(), finalized_features=levels)
        for levels in (
            {"transaction.version": 2, "metadata.version": 25, "group.version": 1},
            {"metadata.version": 27, "group.version": 1, "share.version": 1, "kraft.version": 0},
        )
    )
    assert lines_of(before, after) == [
        "feature_level_changed feature=metadata.version level=27 before=25",
        "feature_level_changed feature=share.version level=1 before=0",
        "feature_level_changed feature=transaction.version level=0 before=2",
    ]
    assert lines_of(before, replace(before, offset=6)) == []

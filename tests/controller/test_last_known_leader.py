"""KIP-966: who led last is remembered when nobody leads any more, and only then."""

import pytest

from kraft_wire.controller.partition_changes import Elections, PartitionChange
from kraft_wire.metadata.features import ELR_VERSION, METADATA_VERSION
from kraft_wire.metadata.image import MetadataImage, PartitionImage
from kraft_wire.settings.node_settings import NodeSettings
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from tests.broker.small_broker import broker_image, image_of, partition_image


def changed(
    isr: tuple[int, ...],
    alive: set[int],
    *,
    keeps_elr: bool = True,
    leader: int = 1,
    last: tuple[int, ...] = (),
    in_sync: tuple[int, ...] = (1, 2, 3),
    level: int = 25,
) -> PartitionChangeRecord:
    """Make the ISR of replicas 1, 2, 3 another one; of the brokers these are alive."""
    before: PartitionImage = partition_image(
        0, replicas=(1, 2, 3), isr=in_sync, leader=leader, last_known_elr=last
    )
    given = image_of({"t": [before]}, [broker_image(each) for each in (1, 2, 3)])
    values = {slot: getattr(given, slot) for slot in type(given).__slots__}
    features = {METADATA_VERSION: level, ELR_VERSION: int(keeps_elr)}
    image = MetadataImage(**{**values, "finalized_features": features})
    elections = Elections.of(image, image.topics_by_name["t"], NodeSettings())
    change = PartitionChange(elections, before, accepts=lambda broker_id: broker_id in alive)
    change.isr = isr
    record = change.record()
    assert record is not None
    made = record.record
    assert isinstance(made, PartitionChangeRecord)
    return made


def test_smaller_isr_under_the_same_leader_remembers_nobody() -> None:
    made = changed((1, 2), {1, 2})
    assert (made.isr, made.last_known_elr) == ([1, 2], None)


def test_other_leader_remembers_nobody() -> None:
    made = changed((2, 3), {2, 3})
    assert (made.leader, made.last_known_elr) == (2, None)


@pytest.mark.parametrize("keeps_elr", [False, True])
def test_last_leader_is_remembered_where_nobody_leads(keeps_elr: bool) -> None:
    made = changed((1,), set(), keeps_elr=keeps_elr)
    assert made.leader == -1
    assert made.last_known_elr == ([1] if keeps_elr else None)


def test_next_leader_forgets_the_last_one() -> None:
    made = changed((2,), {2}, leader=-1, last=(1,), in_sync=())
    assert (made.leader, made.last_known_elr) == (2, [])
    still = changed((), {3}, leader=-1, last=(1,), in_sync=(2,))
    assert still.last_known_elr is None


def test_last_known_leader_does_not_lead_while_the_isr_has_a_replica() -> None:
    """It may lack what the fenced member of the ISR has: only the member may lead."""
    made = changed((2,), {1}, leader=-1, last=(1,), in_sync=(2, 3))
    assert (made.leader, made.isr) == (-2, [2]), "-2: as before"
    assert made.leader_recovery_state == -1


@pytest.mark.parametrize("keeps_elr", [False, True])
def test_replicas_stay_eligible_only_where_elr_is_kept(keeps_elr: bool) -> None:
    made = changed((), set(), keeps_elr=keeps_elr)
    assert made.leader == -1
    assert made.eligible_leader_replicas == ([1, 2, 3] if keeps_elr else None)


@pytest.mark.parametrize("level", [11, 12, 30])
@pytest.mark.parametrize(
    ("in_sync", "isr", "is_smaller"),
    [((1, 2, 3), (1, 2), True), ((1, 2), (1, 2, 3), False), ((1, 2), (1, 3), True)],
)
def test_smaller_isr_begins_a_leader_epoch_below_level_12_only(
    level: int, in_sync: tuple[int, ...], isr: tuple[int, ...], is_smaller: bool
) -> None:
    """KAFKA-15021 (3.6): before, the leader is named again, which bumps its epoch."""
    made = changed(isr, {1, 2, 3}, in_sync=in_sync, keeps_elr=False, level=level)
    assert made.isr == list(isr)
    assert made.leader == (1 if is_smaller and level < 12 else -2)

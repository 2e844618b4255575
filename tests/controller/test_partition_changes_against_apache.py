"""Random changes of random partitions give the records that Apache's own controller makes."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from kraft_wire.controller.partition_changes import Election, Elections, PartitionChange
from kraft_wire.metadata.features import DIRECTORIES_FROM, ELR_VERSION, METADATA_VERSION
from kraft_wire.metadata.image import (
    EMPTY_IMAGE,
    NO_LEADER,
    BrokerImage,
    PartitionImage,
    TopicImage,
)
from kraft_wire.metadata.records import (
    VersionedRecord,
    decode_message,
    encode_record,
    partition_record_version,
)
from kraft_wire.model import Uuid
from kraft_wire.wire.generated.partition_change_record import PartitionChangeRecord
from kraft_wire.wire.generated.partition_record import PartitionRecord
from tests.apache.source_judge import answers_of

CHANGES = 3_000
ELR_FROM = 23
TOPIC_ID = Uuid(b"topic-id-topic-i")
RESERVED = [Uuid(bytes(15) + bytes([number])) for number in range(3)]


def directory(broker_id: int, number: int) -> Uuid:
    return Uuid(bytes([200 + number]) * 15 + bytes([broker_id]))


class Case:
    """One partition, the brokers around it, and a change of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.level = self.random.choice([7, 11, 12, 17, 22, 23, 30, 30, 30])
        self.keeps_elr = self.level >= ELR_FROM and self.random.random() < 0.6
        self.brokers: dict[int, tuple[Uuid, ...]] = {
            number: tuple(sorted(directory(number, each) for each in range(self.below(4))))
            for number in range(1, 7)
            if self.random.random() < 0.9
        }
        self.before = self._partition()
        self.isr = self._some(self.before.replicas, self.before.isr)
        self.accepted = [each for each in self.brokers if self.random.random() < 0.7]
        self.election = self.random.choice(list(Election))
        self.min_isr = self.random.randint(1, len(self.before.replicas))
        self.recovery = self.before.leader_recovery_state if self.random.random() < 0.8 else 0
        self.unclean = self._subset(self.before.replicas, 0.3) if self.random.random() < 0.3 else ()
        self.replicas = self.before.replicas
        self.removing, self.adding = self.before.removing_replicas, self.before.adding_replicas
        if self.brokers and self.random.random() < 0.3:
            self._reassign()
        self.assigned = {
            each: directory(each, self.below(4))
            for each in self.replicas
            if self.level >= DIRECTORIES_FROM and self.random.random() < 0.2
        }

    def below(self, bound: int) -> int:
        return self.random.randrange(bound)

    def _subset(self, ids: Sequence[int], share: float = 0.6) -> tuple[int, ...]:
        return tuple(each for each in ids if self.random.random() < share)

    def _some(self, ids: Sequence[int], usual: Sequence[int]) -> tuple[int, ...]:
        if self.random.random() < 0.5:
            return tuple(usual)
        found = list(self._subset(ids))
        self.random.shuffle(found)
        return tuple(found)

    def _partition(self) -> PartitionImage:
        replicas = tuple(self.random.sample(range(1, 7), self.random.randint(1, 4)))
        removing = self._subset(replicas, 0.5) if self.random.random() < 0.3 else ()
        others = tuple(each for each in replicas if each not in removing)
        adding = self._subset(others, 0.5) if self.random.random() < 0.3 else ()
        isr = self._some(replicas, replicas)
        if not self.keeps_elr:
            isr = isr or replicas[:1]
        left = tuple(sorted({*replicas} - {*isr}))
        is_led = isr and self.random.random() < 0.6
        elr = self._subset(left) if self.level >= ELR_FROM else ()
        last = self._subset(replicas, 0.3) if self.level >= ELR_FROM else ()
        return PartitionImage(
            partition=0,
            replicas=replicas,
            isr=isr,
            leader=self.random.choice(isr) if is_led else NO_LEADER,
            leader_epoch=self.below(9),
            partition_epoch=self.below(9),
            leader_recovery_state=self.below(2),
            removing_replicas=removing,
            adding_replicas=adding,
            directories=self._directories(replicas) if self.level >= DIRECTORIES_FROM else (),
            eligible_leader_replicas=elr,
            last_known_elr=last if self.random.random() < 0.5 else last[:1],
        )

    def _directories(self, replicas: Sequence[int]) -> tuple[Uuid, ...]:
        """Mostly directories of the broker's; at times none is known."""
        if self.random.random() < 0.1:
            return ()
        return tuple(
            self.random.choice(RESERVED)
            if self.random.random() < 0.2
            else directory(each, self.below(3))
            for each in replicas
        )

    def _reassign(self) -> None:
        """New replicas in front and those that go behind them, or what was added taken away."""
        before = self.before
        if self.random.random() < 0.3 and {*before.replicas} - {*before.adding_replicas}:
            self.replicas = tuple(
                each for each in before.replicas if each not in before.adding_replicas
            )
            isr = tuple(each for each in before.isr if each in self.replicas)
            self.isr = isr or self.replicas[:1]
            self.removing = self.adding = ()
            return
        self.election = Election.ONLINE  # as it asks who is new for the directory it has, and fails
        count = self.random.randint(1, len(self.brokers))
        target = self.random.sample(sorted(self.brokers), count)
        removing = sorted(each for each in before.replicas if each not in target)
        adding = sorted(each for each in target if each not in before.replicas)
        self.replicas = (*target, *removing)
        self.removing = tuple(removing) or self.removing
        self.adding = tuple(adding) or self.adding

    def ours(self) -> str:
        """Return our record in hex."""
        before = self.before
        topic = TopicImage("t", TOPIC_ID, {0: before})
        features = {METADATA_VERSION: self.level, ELR_VERSION: int(self.keeps_elr)}
        image = replace(
            EMPTY_IMAGE,
            finalized_features=features,
            topics_by_name={"t": topic},
            topic_names={TOPIC_ID: "t"},
            brokers={
                number: BrokerImage(
                    number,
                    0,
                    Uuid(bytes(16)),
                    {},
                    {},
                    log_dirs=log_dirs,
                    cordoned_log_dirs=log_dirs[: number % 3],
                )
                for number, log_dirs in self.brokers.items()
            },
        )
        elections = Elections(image, topic, self.min_isr, is_unclean_allowed=False)
        accepted = self.accepted
        change = PartitionChange(
            elections, before, accepts=lambda each: each in accepted, election=self.election
        )
        change.isr, change.replicas = self.isr, self.replicas
        change.removing_replicas, change.adding_replicas = self.removing, self.adding
        change.leader_recovery_state = self.recovery
        change.unclean_shutdown = self.unclean
        change.directories.update(self.assigned)
        record = change.record()
        return "none" if record is None else encode_record(record).hex()

    def line(self) -> str:
        """Return the same for the judge."""
        before = self.before
        partition = PartitionRecord(
            topic_id=TOPIC_ID,
            partition_id=before.partition,
            replicas=list(before.replicas),
            isr=list(before.isr),
            leader=before.leader,
            leader_epoch=before.leader_epoch,
            partition_epoch=before.partition_epoch,
            leader_recovery_state=before.leader_recovery_state,
            removing_replicas=list(before.removing_replicas),
            adding_replicas=list(before.adding_replicas),
            directories=list(before.directories),
        )
        if before.eligible_leader_replicas:
            partition.eligible_leader_replicas = list(before.eligible_leader_replicas)
        if before.last_known_elr:
            partition.last_known_elr = list(before.last_known_elr)
        record = VersionedRecord(partition, partition_record_version(self.level))
        ids = [self.isr, self.replicas, self.removing, self.adding, self.unclean, self.accepted]
        return ";".join(
            [
                str(self.level),
                str(self.min_isr),
                str(int(self.keeps_elr)),
                self.election.name,
                str(self.recovery),
                encode_record(record).hex(),
                *(",".join(map(str, each)) for each in ids),
                ",".join(
                    f"{number}={'+'.join(each.hex() for each in log_dirs)}"
                    for number, log_dirs in self.brokers.items()
                ),
                ",".join(f"{number}={each.hex()}" for number, each in self.assigned.items()),
            ]
        )


def removed_but_eligible(case: Case, record: str) -> set[int]:
    """What is no replica any more after their change, and stays eligible."""
    made = PartitionChangeRecord()
    if record != "none":
        decoded = decode_message(bytes.fromhex(record))
        assert isinstance(decoded, PartitionChangeRecord)
        made = decoded
    eligible = made.eligible_leader_replicas
    known = case.before.eligible_leader_replicas if eligible is None else eligible
    return {*known} - {*(made.replicas or case.before.replicas)}


def test_replica_that_a_reassignment_removes_is_not_eligible() -> None:
    """4.3.1 keeps it so: made a replica again it could be elected, and has no log any more."""
    before = PartitionImage(
        *(0, (1, 2, 3), (1,), 1, 0, 0), removing_replicas=(2,), eligible_leader_replicas=(2, 3)
    )
    features = {METADATA_VERSION: 30, ELR_VERSION: 1}
    topic = TopicImage("t", TOPIC_ID, {0: before})
    image = replace(EMPTY_IMAGE, finalized_features=features, topics_by_name={"t": topic})
    elections = Elections(image, topic, 2, is_unclean_allowed=False)
    change = PartitionChange(elections, before, accepts=lambda each: each in (1, 3))
    change.adding_replicas = change.isr = (1,)
    made = change.record()
    assert made is not None
    assert isinstance(made.record, PartitionChangeRecord)
    assert (made.record.replicas, made.record.eligible_leader_replicas) == ([1, 3], [3])


@pytest.mark.java
def test_record_of_a_random_change_is_apaches() -> None:
    cases = [Case(seed) for seed in range(CHANGES)]
    source = Path(__file__).with_name("PartitionJudge.java")
    theirs = answers_of(source, (case.line() for case in cases), heap="1g").split()
    assert len(theirs) == len(cases)
    compared = 0
    for seed, (case, record) in enumerate(zip(cases, theirs, strict=True)):
        if {*case.adding} & {*case.removing} or removed_but_eligible(case, record):
            continue  # DEVIATIONS.md: 4.3.1 waits for it for ever, or may elect it
        assert case.ours() == record, (seed, vars(case))
        compared += 1
    assert compared > 0.9 * CHANGES
    assert theirs.count("none") < len(theirs) // 4, "most changes change something"

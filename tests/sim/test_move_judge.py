"""Replicas that move between log directories: the judge finds each planted violation.

And whole clusters of brokers with several directories. `cluster_directory_seeds.txt` holds the
seeds that once failed, each with its story.
"""

from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from kraft_wire.sim.judge.move_judge import MoveJudge
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.sim.plans.cluster_plan import drawn_cluster_plan
from kraft_wire.sim.plans.directory_plan import with_directories
from kraft_wire.sim.runs.campaign import drawn
from kraft_wire.sim.runs.run import run_plan
from kraft_wire.sim.setup import directory_id
from tests.seeds import kept_seeds
from tests.sim.test_data_judge import BROKERS, SEGMENT, Stage, batch

EVENTS = 3_000
SEEDS = (102, 115)
RECORDS = (batch(0), batch(1))


class Brokers(Stage):
    """Three replicas, each on a broker with the log directories `data` and `data2`."""

    def __init__(self) -> None:
        super().__init__(directories=2)
        for machine in self.machines.values():
            machine.fs.make_directory("data2")
            broker = machine.node.broker
            broker.partitions["t", 0].log.directory = "data/t-0"
            broker.logs = SimpleNamespace(log_directories=[SimpleNamespace(offline=None)])
            broker.image = SimpleNamespace(topic_by_id=lambda topic_id: None)
        self.assigned(11, 0)
        for at, record in enumerate(RECORDS):
            self.commit(record, at + 1)

    @property
    def moves(self) -> MoveJudge:
        assert self.judge.moves is not None
        return self.judge.moves

    def assigned(self, node_id: int, number: int) -> None:
        """The controllers commit the directory of one replica; the others are in the first."""
        places = (directory_id(each, 0, number if each == node_id else 0) for each in BROKERS)
        self.truth.directories = tuple(places)

    def copies(self, node_id: int, *batches: bytes, name: str = "t-0.1d-future") -> None:
        """A directory beside the log gets these batches."""
        fs = self.machines[node_id].fs
        fs.make_directory(f"data2/{name}")
        fs.open(f"data2/{name}/{SEGMENT}", create=True).pwrite(b"".join(batches), 0)

    def promotes(self, node_id: int) -> None:
        """The copy becomes the log, and its node has that judged."""
        fs, log = self.machines[node_id].fs, self.partition(node_id).log
        fs.rename("data/t-0", "data/t-0.1d-delete")
        fs.rename("data2/t-0.1d-future", "data2/t-0")
        log.directory = "data2/t-0"
        self.look(node_id)


def log_is_in_two_directories(stage: Brokers) -> None:
    stage.copies(12, *RECORDS, name="t-0")
    stage.look(12)


def copy_lacks_a_record(stage: Brokers) -> None:
    stage.assigned(12, 1)
    stage.copies(12, RECORDS[0])
    stage.promotes(12)


def copy_has_another_record(stage: Brokers) -> None:
    stage.assigned(12, 1)
    stage.copies(12, RECORDS[0], batch(1, b"other"))
    stage.promotes(12)


def controllers_do_not_know(stage: Brokers) -> None:
    stage.copies(12, *RECORDS)
    stage.promotes(12)


PLANTED: list[tuple[str, Callable[[Brokers], None]]] = [
    ("S70 OneLog", log_is_in_two_directories),
    ("S71 MovedWhole", copy_lacks_a_record),
    ("S71 MovedWhole", copy_has_another_record),
    ("S72 PlaceIsTold", controllers_do_not_know),
]


@pytest.mark.parametrize(("invariant", "plant"), PLANTED, ids=[p.__name__ for _, p in PLANTED])
def test_planted_violation_is_found(invariant: str, plant: Callable[[Brokers], None]) -> None:
    with pytest.raises(Violation) as found:
        plant(Brokers())
    assert found.value.invariant == invariant


def test_move_that_goes_its_usual_way_is_no_violation() -> None:
    stage = Brokers()
    stage.copies(12, *RECORDS)
    assert "12 has copies in data2" in str(stage.moves.why_unplaced())
    stage.assigned(12, 1)
    stage.promotes(12)
    assert stage.moves.why_unplaced() is None
    assert stage.judge.marks["replica served from another directory"] == 1
    assert stage.judge.watches[12][stage.truth.topic_id, 0].log.directory == "data2/t-0"


def test_replica_of_a_stopped_broker_is_its_copy_between_the_renames_of_a_promotion() -> None:
    stage = Brokers()
    stage.copies(12, *RECORDS)
    machine, watch = stage.machines[12], stage.judge.watches[12][stage.truth.topic_id, 0]
    stage.judge.stopped(machine)
    watch.look()
    assert (watch.log.directory, watch.log.end_offset) == ("data/t-0", 2)
    machine.fs.rename("data/t-0", "data/t-0.1d-delete")
    watch.look()
    assert (watch.log.directory, watch.log.end_offset) == ("data2/t-0.1d-future", 2)


def test_directory_of_the_metadata_or_of_the_last_answer_is_where_the_log_must_end() -> None:
    stage = Brokers()
    stage.assigned(12, 1)
    assert "12 t-0: it is in data, the metadata has it in" in str(stage.moves.why_unplaced())
    stage.assigned(12, 0)
    stage.moves.answered(12, stage.truth, "data2")
    assert stage.moves.why_unplaced() == "12 t-0: it is in data, and was asked to move to data2"
    stage.truth.assignments += 1
    assert stage.moves.why_unplaced() is None, "the replica was taken away meanwhile"
    stage.moves.answered(12, stage.truth, "data2")
    stage.moves.asked(12, stage.truth)
    assert stage.moves.why_unplaced() is None, "another request may arrive"
    stage.moves.unanswered(12)
    stage.moves.answered(12, stage.truth, "data2")
    assert stage.moves.why_unplaced() is None, "an old request may arrive after the last one"


def test_plan_with_directories_is_the_seeds_plan_and_more() -> None:
    plan = drawn_cluster_plan(5)
    more = with_directories(plan)
    assert set(plan.faults) < set(more.faults)
    assert more.setup.data.directories in (2, 3)
    assert (more.habits, more.setup.brokers) == (plan.habits, plan.setup.brokers)


@pytest.mark.parametrize("seed", kept_seeds(__file__, "cluster_directory_seeds.txt"))
def test_seed_that_once_failed_holds_every_invariant(seed: int) -> None:
    plan = drawn(seed, events=4_000, nodes=None, brokers=0, focus="directories")
    assert run_plan(plan).failure is None


def test_replicas_move_under_faults_without_losing_a_record() -> None:
    marks: Counter[str] = Counter()
    for seed in SEEDS:
        result = run_plan(drawn(seed, events=EVENTS, nodes=None, brokers=0, focus="directories"))
        assert result.failure is None
        assert result.marks["cluster settled"] == 1
        marks += result.marks
    for name in (
        "replica served from another directory",
        "log replica_move_cancelled",
        "log replica_move_resumed",
        "AlterReplicaLogDirs LOG_DIR_NOT_FOUND",
    ):
        assert marks[name] > 0, name

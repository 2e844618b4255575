"""Clocks, wires, plans and the shrinker, each by itself."""

from dataclasses import replace
from random import Random

import pytest

from kraft_wire.sim.judge.invariants import SAFETY, Canary
from kraft_wire.sim.network import Network, SimConnection
from kraft_wire.sim.plans.plan import (
    FAULT_KINDS,
    Fault,
    Plan,
    drawn_plan,
    plan_from_json,
    plan_to_json,
)
from kraft_wire.sim.runs.run import Failure, run_plan
from kraft_wire.sim.runs.shrink import shrink
from kraft_wire.sim.scheduler import Clock, Scheduler
from kraft_wire.sim.wires import frames_of


class Party:
    """One end of connections that writes down what it sees."""

    def __init__(self, place: int) -> None:
        self.place = place
        self.is_up = True
        self.seen: list[object] = []

    def accepted(self, connection: SimConnection) -> None:
        self.seen.append("accepted")

    def opened(self, connection: SimConnection) -> None:
        self.seen.append("opened")

    def received(self, connection: SimConnection, data: bytes) -> None:
        self.seen.append(data)

    def closed(self, connection: SimConnection) -> None:
        self.seen.append("closed")


class Wire:
    """Two parties and the network between them."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.network = Network(self.scheduler, Random(1))
        self.one, self.other = Party(1), Party(2)
        self.network.listening["other", 1] = self.other

    def connect(self) -> SimConnection:
        connection = self.network.dial(self.one, "other", 1, 7)
        assert connection is not None
        return connection

    def rest(self) -> None:
        while self.scheduler.step():
            pass


@pytest.mark.parametrize("rate", [100, 999, 1_000, 1_001, 10_000])
def test_deadline_is_reached_at_the_first_moment_that_the_clock_shows_it(rate: int) -> None:
    clock = Clock(rate)
    clock.restart(5_000, 70)
    for deadline_ms in range(70, 400, 7):
        at_us = clock.true_us(deadline_ms)
        assert clock.now_ms(at_us) >= deadline_ms
        assert at_us == 5_000 or clock.now_ms(at_us - 1) < deadline_ms


def test_change_of_rate_never_turns_a_clock_back() -> None:
    clock = Clock()
    before = 0
    for number, rate in enumerate((1_000, 100, 10_000, 500)):
        clock.change_rate(number * 77_777, rate)
        now_ms = clock.now_ms(number * 77_777)
        assert now_ms >= before
        before = now_ms


def test_bytes_arrive_in_order_whatever_each_of_them_takes() -> None:
    wire = Wire()
    connection = wire.connect()
    wire.rest()
    for number in range(50):
        wire.network.send(connection, wire.one, bytes([number]))
    wire.rest()
    assert wire.other.seen == ["accepted", *(bytes([number]) for number in range(50))]


def test_cut_holds_one_direction_and_healing_lets_everything_pass() -> None:
    wire = Wire()
    connection = wire.connect()
    wire.rest()
    wire.network.cut(1, 2)
    wire.network.send(connection, wire.one, b"there")
    wire.network.send(connection, wire.other, b"back")
    wire.rest()
    assert (wire.one.seen[-1], wire.other.seen) == (b"back", ["accepted"])
    wire.network.heal(1, 2)
    wire.rest()
    assert wire.other.seen[-1] == b"there"


def test_end_of_a_connection_comes_behind_its_bytes() -> None:
    wire = Wire()
    connection = wire.connect()
    wire.rest()
    wire.network.send(connection, wire.one, b"last words")
    wire.network.leave(connection, wire.one)
    wire.rest()
    assert wire.other.seen == ["accepted", b"last words", "closed"]


def test_connection_to_a_process_that_is_down_is_refused() -> None:
    wire = Wire()
    wire.other.is_up = False
    wire.connect()
    wire.rest()
    assert wire.one.seen == ["closed"]


def test_silent_loss_of_power_is_noticed_by_the_next_bytes_after_the_restart() -> None:
    wire = Wire()
    connection = wire.connect()
    wire.rest()
    wire.network.abandon(wire.other, is_silent=True)
    wire.rest()
    assert wire.one.seen == ["opened"]
    wire.network.send(connection, wire.one, b"are you there")
    wire.rest()
    assert wire.one.seen == ["opened", "closed"]


def test_frames_are_cut_wherever_the_bytes_break() -> None:
    stream = b"".join(len(each).to_bytes(4, "big") + each for each in (b"one", b"", b"three"))
    for size in range(1, len(stream)):
        buffer = bytearray()
        found: list[bytearray] = []
        for at in range(0, len(stream), size):
            found += frames_of(buffer, stream[at : at + size])
        assert found == [b"one", b"", b"three"]


@pytest.mark.parametrize("seed", range(20))
def test_plan_survives_its_file(seed: int) -> None:
    plan = drawn_plan(seed)
    assert plan_from_json(plan_to_json(plan)) == plan


def test_plan_file_that_is_none_is_refused() -> None:
    for text in ("[]", "{", '{"seed": 1, "moon": 2}', '{"seed": 1, "setup": {"moon": 1}}'):
        with pytest.raises(ValueError):  # noqa: PT011  # the texts are those of other parsers
            plan_from_json(text)


def test_every_kind_of_fault_is_drawn_in_a_thousand_seeds() -> None:
    drawn = {fault.kind for seed in range(300) for fault in drawn_plan(seed).faults}
    assert drawn == set(FAULT_KINDS)


def test_shrinker_finds_the_two_faults_that_matter() -> None:
    """A made-up failure: it needs one crash before one cut, and nothing else."""
    plan = replace(drawn_plan(9), faults=())
    noise = [Fault(at_us=at * 1_000, kind="slow") for at in range(60)]
    needed = [Fault(at_us=7_500, kind="crash"), Fault(at_us=33_500, kind="cut")]
    plan = replace(plan, faults=tuple(sorted([*noise, *needed], key=lambda each: each.at_us)))

    def fails(candidate: Plan) -> Failure | None:
        kinds = [each.kind for each in candidate.faults if each.kind != "slow"]
        is_broken = kinds == ["crash", "cut"] and candidate.events >= 100
        return Failure("S01 Made up", "", candidate.events, 40_000) if is_broken else None

    failure = fails(plan)
    assert failure is not None
    found = shrink(plan, failure, fails)
    assert [each.kind for each in found.plan.faults] == ["crash", "cut"]
    assert 100 <= found.plan.events <= 200
    assert found.plan.setup.clients == 0


def test_canary_is_caught_end_to_end_and_shrinks_to_almost_nothing() -> None:
    kinds = (*SAFETY, Canary)
    plan = drawn_plan(1)
    failure = run_plan(plan, kinds=kinds).failure
    assert failure is not None
    found = shrink(plan, failure, lambda candidate: run_plan(candidate, kinds=kinds).failure)
    assert found.failure.invariant == "S00 Canary"
    assert found.plan.faults == ()
    assert found.failure.events <= 2 * failure.events + 50
    again = plan_from_json(plan_to_json(found.plan))
    assert run_plan(again, kinds=kinds).failure == found.failure

"""The scenarios: what Kafka promises to transactional producers and to readers of both levels.

Each uses topics, groups and transactional ids of its own. Where brokers restart meanwhile a client
may have to abort, and the scenario does the transaction again; a commit with an unknown outcome
(an error that left open whether it took place) may show its records, but all of them or none.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.clients.transactions.driver import ClientError, Driver, Record, Session

__all__ = ["SCENARIOS", "ScenarioFailed", "World"]

PARTITIONS = 3
TRIES = 20
PAUSE_S = 1.0
SHORT_TIMEOUT_MS = 2_000
RECORDS_OF_A_MOVE = 10
ABORTED_EVERY = 4
PORTION = 1_500
IDLE_POLLS = 3
MOVING_SECONDS_MAX = 400.0
"""librdkafka needs minutes where a broker restarts every ten seconds, of either make."""

Records = Sequence[tuple[int, str]]


class ScenarioFailed(AssertionError):
    """What a client shows is not what Kafka promises."""


@dataclass
class World:
    """One client at work on one broker or cluster."""

    driver: Driver
    create: Callable[[str, int], None]
    """Create a topic with so many partitions."""
    name: str
    """Of all that the scenario makes."""
    reader: Driver
    """The same client, or another one where it can not read."""
    brokers_restart: bool = False
    moved: int = 60
    """Records that are moved from one topic to another."""
    large: int = 2_000
    """Records of one large transaction."""
    maybe: list[list[str]] = field(default_factory=list)
    """Values of transactions whose outcome is unknown."""

    def topic(self, name: str = "out", partitions: int = PARTITIONS) -> str:
        """Create a topic."""
        topic = f"{self.name}-{name}"
        self.create(topic, partitions)
        return topic

    def commit(self, session: Session, topic: str, text: str, count: int = 10) -> list[str]:
        """Commit records to every partition, in as many tries as it takes; return their values."""
        for attempt in range(TRIES if self.brokers_restart else 1):
            records = spread(f"{text}.{attempt}", count)
            if self._tried(session, topic, records):
                return [value for _, value in records]
        raise ScenarioFailed(f"no commit in {TRIES} tries")

    def _tried(self, session: Session, topic: str, records: Records) -> bool:
        is_ending = False
        try:
            session.begin()
            send(session, topic, records)
            is_ending = True
            session.commit()
        except ClientError as error:
            if not self.brokers_restart:
                raise
            if is_ending:
                self.maybe.append([value for _, value in records])
            recover(session, error)
            return False
        return True

    def expect(self, found: Sequence[Record], wanted: Sequence[str]) -> None:
        """Each wanted value once, in each partition in order, and nothing but what may be there."""
        values = Counter(value for _, _, value in found)
        for unknown in self.maybe:
            there = sum(values.pop(value, 0) for value in unknown)
            check(there in (0, len(unknown)), f"{there} of {len(unknown)} of an unknown outcome")
        strange, lost = values - Counter(wanted), Counter(wanted) - values
        check(not strange, f"{sum(strange.values())} records too many: {sorted(strange)[:4]}")
        check(not lost, f"{sum(lost.values())} records too few: {sorted(lost)[:4]}")
        for partition in {each for each, _, _ in found}:
            offsets = [offset for each, offset, _ in found if each == partition]
            check(offsets == sorted(offsets), f"offsets of {partition} in order")


def check(holds: bool, what: str) -> None:
    """Fail with words unless it holds."""
    if not holds:
        raise ScenarioFailed(what)


def send(session: Session, topic: str, records: Records) -> None:
    """Send in portions: some clients make one batch of all that is theirs at once."""
    for start in range(0, len(records), PORTION):
        session.send(topic, records[start : start + PORTION])


def spread(text: str, count: int) -> list[tuple[int, str]]:
    """So many values on each partition."""
    return [(number % PARTITIONS, f"{text}-{number}") for number in range(count * PARTITIONS)]


def recover(session: Session, error: ClientError) -> None:
    """Abort, or begin with a new producer where this one cannot continue."""
    deadline = time.monotonic() + 120
    is_fatal = error.is_fatal
    while True:
        try:
            return session.open() if is_fatal else session.abort()
        except ClientError:
            if time.monotonic() > deadline:
                raise
            is_fatal = True
            time.sleep(PAUSE_S)


def refused(step: Callable[[], object]) -> bool:
    """Whether the client raises."""
    try:
        step()
    except ClientError:
        return True
    return False


def commit(world: World) -> None:
    """An open transaction is seen at READ_UNCOMMITTED alone; after its commit by all, at once."""
    topic = world.topic()
    session = world.driver.session(f"{world.name}-a")
    if not world.brokers_restart:
        session.begin()
        session.send(topic, spread("open", 10))
        check(world.reader.read(topic, PARTITIONS, 0) == [], "open records at READ_COMMITTED")
        found = world.reader.read(topic, PARTITIONS, 30, committed=False, quiet_ms=100)
        world.expect(found, [value for _, value in spread("open", 10)])
        session.commit()
        first = [value for _, value in spread("open", 10)]
    else:
        first = world.commit(session, topic, "first")
    second = world.commit(session, topic, "second")
    found = world.reader.read(topic, PARTITIONS, len(first) + len(second))
    world.expect(found, first + second)


def abort(world: World) -> None:
    """Aborted records, before and between committed ones, are seen at READ_UNCOMMITTED alone."""
    topic = world.topic()
    session = world.driver.session(f"{world.name}-a")
    wanted: list[str] = []
    aborted: list[str] = []
    for number in range(3):
        records = spread(f"aborted-{number}", 5)
        try:
            session.begin()
            session.send(topic, records)
            session.abort()
            aborted += [value for _, value in records]
        except ClientError as error:
            if not world.brokers_restart:
                raise
            recover(session, error)
        wanted += world.commit(session, topic, f"kept-{number}", 5)
    world.expect(world.reader.read(topic, PARTITIONS, len(wanted)), wanted)
    every = world.reader.read(
        topic, PARTITIONS, len(wanted) + len(aborted), committed=False, quiet_ms=100
    )
    missing = {*wanted, *aborted} - {value for _, _, value in every}
    check(not missing, f"at READ_UNCOMMITTED {len(missing)} records are not seen")


def fence(world: World) -> None:
    """A twin with the same id aborts what the first one has open, and fences it for ever."""
    topic = world.topic()
    first = world.driver.session(f"{world.name}-a", name="first")
    before = world.commit(first, topic, "before", 3)
    first.begin()
    first.send(topic, spread("open", 3))
    twin = world.driver.session(f"{world.name}-a", name="twin")
    check(refused(first.commit), "the first producer commits beside its twin")
    after = world.commit(twin, topic, "after", 3)

    def again() -> None:
        first.begin()
        first.send(topic, spread("fenced", 3))
        first.commit()

    check(refused(again), "the first producer has another transaction beside its twin")
    world.expect(world.reader.read(topic, PARTITIONS, len(before) + len(after)), before + after)


def timeout(world: World) -> None:
    """A transaction that stays open is aborted by its time-out, and can not be committed then."""
    topic = world.topic()
    slow = world.driver.session(f"{world.name}-slow", timeout_ms=SHORT_TIMEOUT_MS)
    slow.begin()
    is_late = refused(lambda: slow.send(topic, spread("late", 3)))
    check(world.brokers_restart or not is_late, "a transaction is over before its time-out")
    wanted = world.commit(world.driver.session(f"{world.name}-quick"), topic, "behind", 3)
    world.expect(world.reader.read(topic, PARTITIONS, len(wanted)), wanted)
    check(refused(slow.commit), "a transaction is committed after its time-out")
    again = world.driver.session(f"{world.name}-slow", name="again")
    wanted += world.commit(again, topic, "again", 3)
    world.expect(world.reader.read(topic, PARTITIONS, len(wanted)), wanted)


def move(world: World) -> None:
    """Consume, transform, produce: the offsets share the fate of the records, each moved once."""
    source, target = world.topic("in"), world.topic("out")
    filling = world.driver.session(f"{world.name}-fill")
    numbers: list[str] = []
    while len(numbers) < world.moved:
        numbers += world.commit(filling, source, f"n{len(numbers)}", 20)
    numbers = sorted({value for _, _, value in world.reader.read(source, PARTITIONS, len(numbers))})
    mover = world.driver.session(
        f"{world.name}-move", group=f"{world.name}-group", source=source, timeout_ms=30_000
    )
    wanted = sorted(f"{number}!" for number in numbers)
    deadline = time.monotonic() + MOVING_SECONDS_MAX
    transactions = idle = 0
    while idle < IDLE_POLLS or not has_all(world, target, wanted):
        check(time.monotonic() < deadline, f"not moved in {transactions} transactions")
        try:
            taken = mover.poll(RECORDS_OF_A_MOVE)
            idle = 0 if taken else idle + 1
            if taken:
                transactions += 1
                transform(mover, target, taken, commits=transactions % ABORTED_EVERY != 0)
        except ClientError as error:
            if not world.brokers_restart:
                raise
            recover(mover, error)
    mover.close()
    found = world.reader.read(target, PARTITIONS, len(wanted))
    check(sorted(value for _, _, value in found) == wanted, moved_wrongly(found, wanted))


def transform(mover: Session, target: str, taken: Sequence[Record], *, commits: bool) -> None:
    """One transaction."""
    mover.begin()
    mover.send(target, [(partition, f"{value}!") for partition, _, value in taken])
    if commits:
        mover.commit()
    else:
        mover.abort(with_offsets=True)


def has_all(world: World, target: str, wanted: Sequence[str]) -> bool:
    """Whether nothing is to be moved any more."""
    return len(world.reader.read(target, PARTITIONS, 0)) >= len(wanted)


def moved_wrongly(found: Sequence[Record], wanted: Sequence[str]) -> str:
    """What is there twice, and what is not there."""
    values = Counter(value for _, _, value in found)
    twice = sorted(value for value, count in values.items() if count > 1)
    lost = sorted(set(wanted) - set(values))
    return f"twice: {len(twice)} {twice[:3]}, lost: {len(lost)} {lost[:3]} of {len(wanted)}"


def large(world: World) -> None:
    """A transaction of many records over several partitions, aborted once and committed once."""
    topic = world.topic()
    session = world.driver.session(f"{world.name}-a", timeout_ms=120_000)
    filler = "kafka wire " * 30
    count = world.large // PARTITIONS
    if not world.brokers_restart:
        session.begin()
        send(session, topic, spread(f"{filler} aborted", count))
        session.abort()
    wanted = world.commit(session, topic, filler, count)
    world.expect(world.reader.read(topic, PARTITIONS, len(wanted)), wanted)


SCENARIOS: dict[str, Callable[[World], None]] = {
    "commit": commit,
    "abort": abort,
    "fence": fence,
    "timeout": timeout,
    "move": move,
    "large": large,
}

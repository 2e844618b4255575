"""Stories of one share partition that Apache's SharePartition and ours can be told, from a seed.

`tests/apache/java/judge/SharePartitions.java` names the lines; `Told` answers them with ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from kraft_wire.broker.coordination.clock_reading import ClockReading
from kraft_wire.broker.share_fetch.acknowledge import Acknowledgement, acknowledge, release
from kraft_wire.broker.share_fetch.acquire import Fetched, acquire
from kraft_wire.broker.share_fetch.locks import Locks
from kraft_wire.broker.share_fetch.log_batches import LogBatch
from kraft_wire.broker.share_fetch.record_state import ACQUIRED, RecordState
from kraft_wire.broker.share_fetch.share_partition import (
    Done,
    Outcome,
    ShareEnvironment,
    SharePartition,
)
from kraft_wire.broker.share_fetch.share_settings import ShareGroupSettings
from kraft_wire.broker.share_persister import ShareStateWrite
from kraft_wire.model import LeaderEpoch
from kraft_wire.wire.generated.error_code import ErrorCode
from tests.broker.share_fetch.recording_persister import RecordingPersister
from tests.broker.share_fetch.sharing import key_of

MEMBERS = ("a", "b", "c")
STEPS = 60
PRODUCER = 7
LOCK_MS = 20_000
_CODES = (0, 0, 0, 0, 0, 0, 16, 69, 3, 74, 124, 35, 42, 6)


def story(seed: int) -> Iterator[str]:
    """Yield the lines of one story."""
    chance = random.Random(seed)
    yield from Storyteller(chance).lines()


class Storyteller:
    """Draws the next line from what our own share partition looks like."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.told = Told()
        self.now_ms = 1_000
        self.names = 0
        self.log: list[LogBatch] = []
        self.aborted: list[int] = []
        self.log_start = 0

    def lines(self) -> Iterator[str]:
        chance = self.chance
        start = chance.choice((0, 0, 3, 10))
        self._grow(start)
        locks, limit = chance.choice((8, 20, 60, 200)), chance.choice((2, 3, 4, 5, 10))
        stored = self._stored(start) if chance.random() < 0.4 else "-"
        line = f"begin {locks} {limit} {LOCK_MS} {start} {stored}"
        self.told.tell(line)
        yield line
        for _ in range(STEPS):
            if self._is_behind_split_batch():
                return
            line = self._next()
            self.told.tell(line)
            yield line
        while self.told.persister.waiting and not self._is_behind_split_batch():
            self.told.tell("written 0")
            yield "written 0"

    def _is_behind_split_batch(self) -> bool:
        """Whether the start is in a gap behind records with states of their own.

        Apache's class fails with a NullPointerException there, and its start never moves again.
        """
        partition = self.told.partition
        batch = partition.in_flight.floor(partition.start_offset)
        if batch is None or batch.whole is not None:
            return False
        return partition.start_offset > batch.last_offset

    def _grow(self, start: int) -> None:
        """Write the log: batches of every size, gaps of compaction, transactions."""
        chance = self.chance
        offset, opened = max(0, start - chance.choice((0, 0, 2, 7))), -1
        while offset < 400:
            if chance.random() < 0.06:
                offset += chance.choice((1, 4, 15))
            if opened >= 0 and chance.random() < 0.4:
                is_abort = chance.random() < 0.6
                if is_abort:
                    self.aborted.append(opened)
                self.log.append(LogBatch(offset, offset, 78, PRODUCER, True, is_abort))
                opened, offset = -1, offset + 1
                continue
            last = offset + chance.choice((0, 0, 1, 2, 4, 9, 19))
            is_open = chance.random() < 0.15 or (opened >= 0 and chance.random() < 0.5)
            if is_open and opened < 0:
                opened = offset
            self.log.append(LogBatch(offset, last, 70, PRODUCER if is_open else -1, is_open))
            offset = last + 1
        if opened >= 0:
            self.aborted.append(opened)

    def _stored(self, start: int) -> str:
        """Draw the batches that a former leader wrote."""
        chance, offset, found = self.chance, start, []
        for _ in range(chance.randrange(1, 6)):
            offset += chance.choice((0, 0, 0, 1, 3, 8))
            last = offset + chance.choice((0, 1, 4, 9))
            found.append(
                f"{offset}-{last}:{chance.choice((0, 0, 2, 4))}x{chance.choice((1, 1, 2, 3))}"
            )
            offset = last + 1
        return ",".join(found)

    def _next(self) -> str:
        drawn = self.chance.random()
        if self.told.persister.waiting and drawn < 0.3:
            return f"written {self.chance.choice(_CODES)}"
        if drawn < 0.55:
            return self._acquire()
        if drawn < 0.85:
            return self._acknowledge()
        if drawn < 0.93:
            self.now_ms += self.chance.choice((1, 4_000, 9_000, LOCK_MS, LOCK_MS + 1))
            return f"time {self.now_ms}"
        if drawn < 0.955:
            self.names += 1
            return f"release {self.names} {self.chance.choice(MEMBERS)}"
        if drawn < 0.98:
            return self._move_log_start()
        limit, renews = self.chance.choice((2, 3, 5, 10)), self.chance.choice((0, 1, 1))
        return f"limit {limit} {LOCK_MS} 100 {renews}"

    def _move_log_start(self) -> str:
        """Move the start of the log, but not into a batch whose release is being written.

        Apache's class then keeps the locks of the released records: a member that acquires one
        loses it early, or the fetch fails.
        """
        partition = self.told.partition
        offset = partition.start_offset + self.chance.choice((0, 1, 3, 8, 30))
        offset = max(self.log_start, offset)
        batch = partition.in_flight.floor(offset)
        if batch is not None and batch.whole is not None and batch.whole.is_changing:
            offset = max(self.log_start, batch.first_offset)
        self.log_start = offset
        return f"start {offset}"

    def _acquire(self) -> str:
        chance = self.chance
        offset = max(self.told.partition.next_fetch_offset(), self.log_start)
        found = [each for each in self.log if each.last_offset >= offset]
        read = found[: chance.choice((1, 1, 2, 3, 6, 12))]
        text = ",".join(_batch_text(each) for each in read) or "-"
        last = read[-1].last_offset if read else offset
        aborted = [first for first in self.aborted if first <= last]
        is_committed = chance.random() < 0.4
        return " ".join(
            (
                "acquire",
                chance.choice(MEMBERS),
                str(chance.choice((0, 0, 1))),
                str(chance.choice((1, 2, 5, 500))),
                str(chance.choice((1, 2, 3, 7, 20, 500))),
                str(offset),
                text,
                ",".join(map(str, aborted)) if is_committed and aborted else "-",
            )
        )

    def _acknowledge(self) -> str:
        """Mostly what a member has, sometimes what it has not."""
        chance = self.chance
        self.names += 1
        owned = self._owned()
        member = chance.choice(MEMBERS)
        ranges = [(first, last) for owner, first, last in owned if owner == member]
        if not ranges or chance.random() < 0.12:
            first = max(0, self.told.partition.start_offset + chance.randrange(-4, 12))
            ranges = [(first, first + chance.choice((0, 1, 5)))]
        batches, end = [], -1
        for first, last in ranges[: chance.choice((1, 1, 2, 4))]:
            if chance.random() < 0.3 and last > first:
                first += chance.randrange(last - first)
            if chance.random() < 0.3 and last > first:
                last -= chance.randrange(last - first)
            if first <= end:
                continue
            end = last
            count = last - first + 1 if chance.random() < 0.3 else 1
            types = ".".join(str(chance.choice((1, 1, 1, 2, 2, 3, 0, 4))) for _ in range(count))
            batches.append(f"{first}-{last}:{types}")
        return f"acknowledge {self.names} {member} {','.join(batches)}"

    def _owned(self) -> list[tuple[str, int, int]]:
        owned: list[tuple[str, int, int]] = []
        for batch in self.told.partition.in_flight:
            if batch.whole is not None:
                if batch.whole.state is ACQUIRED:
                    owned.append((batch.whole.member_id, batch.first_offset, batch.last_offset))
                continue
            for offset, state in batch.states(batch.first_offset, batch.last_offset):
                if state.state is not ACQUIRED:
                    continue
                if owned and owned[-1][0] == state.member_id and owned[-1][2] == offset - 1:
                    owned[-1] = (state.member_id, owned[-1][1], offset)
                else:
                    owned.append((state.member_id, offset, offset))
        return owned


def _batch_text(batch: LogBatch) -> str:
    kind = ""
    if batch.is_transactional:
        kind = ":t"
    if batch.size_bytes == 78:
        kind = ":a" if batch.is_abort_marker else ":c"
    return f"{batch.base_offset}-{batch.last_offset}{kind}"


class Told:
    """Our share partition, told the same lines."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.persister = RecordingPersister()
        self.persister.answers_at_once = False
        self.at = ClockReading(1_000, 0)
        self.partition: SharePartition
        self._locks = Locks()
        self._settings = ShareGroupSettings()
        self._events: list[str] = []
        self._written = 0

    def tell(self, line: str) -> None:
        """Follow one line, and note the answer to it."""
        verb, *words = line.split()
        getattr(self, f"tell_{verb}")(*words)
        self._note_writes()
        self.answers.append(self._state())

    def _note_writes(self) -> None:
        for _, write in self.persister.writes[self._written :]:
            self._events.append(_write_text(write))
        self._written = len(self.persister.writes)

    def tell_begin(self, locks: str, limit: str, lock_ms: str, start: str, stored: str) -> None:
        self._settings = ShareGroupSettings(
            record_lock_duration_ms=int(lock_ms),
            delivery_count_limit=int(limit),
            partition_max_record_locks=int(locks),
        )
        env = ShareEnvironment(
            self.persister,
            self._locks,
            lambda group: self._settings,
            lambda changed: None,
            lambda asked, at: ErrorCode.OFFSET_NOT_AVAILABLE,
        )
        batches = []
        for each in () if stored == "-" else stored.split(","):
            numbers = each.replace(":", "-").replace("x", "-").split("-")
            batches.append(tuple(int(number) for number in numbers))
        self.persister.start(key_of(), int(start), *batches)
        state = self.persister.states[key_of()]
        self.persister.states[key_of()] = state._replace(state_epoch=5)
        self.partition = SharePartition(key_of(), LeaderEpoch(3), env)
        self.partition.load(self.at, self._noting("load"))
        self.persister.answer(self.at)

    def _noting(self, name: str) -> Done:
        def note(outcome: Outcome, at: ClockReading) -> None:
            self._note_writes()
            is_done = outcome.error == ErrorCode.NONE
            self._events.append(
                f"{name} 0" if is_done else f"{name} {int(outcome.error)} {_null(outcome.message)}"
            )

        return note

    def tell_limit(self, limit: str, lock_ms: str, locks: str, renews: str) -> None:
        self._settings = ShareGroupSettings(
            record_lock_duration_ms=int(lock_ms),
            delivery_count_limit=int(limit),
            partition_max_record_locks=int(locks),
            renew_acknowledge_enable=renews == "1",
        )

    def tell_acquire(
        self, member: str, mode: str, size: str, most: str, offset: str, batches: str, aborted: str
    ) -> None:
        fetched = Fetched(
            member_id=member,
            is_record_limit=mode == "1",
            batch_size=int(size),
            max_records=int(most),
            fetch_offset=int(offset),
            batches=[_log_batch(each) for each in batches.split(",") if each != "-"],
            aborted=[(PRODUCER, int(each)) for each in aborted.split(",") if each != "-"],
        )
        acquired = acquire(self.partition, fetched, self.at)
        ranges = [f"{first}-{last}:{count}" for first, last, count in acquired.ranges]
        self._events.append(f"acquired {acquired.records_count} {','.join(ranges)}")

    def tell_acknowledge(self, name: str, member: str, batches: str) -> None:
        asked = []
        for each in batches.split(","):
            offsets, types = each.split(":")
            first, last = offsets.split("-")
            asked.append(
                Acknowledgement(int(first), int(last), [int(kind) for kind in types.split(".")])
            )
        acknowledge(self.partition, member, asked, self.at, self._noting(name))

    def tell_release(self, name: str, member: str) -> None:
        release(self.partition, member, self.at, self._noting(name))

    def tell_start(self, offset: str) -> None:
        self.partition.move_log_start(int(offset))

    def tell_written(self, code: str) -> None:
        then, results = self.persister.waiting.pop(0)
        error = ErrorCode(int(code))
        then({key: result._replace(error=error) for key, result in results.items()}, self.at)

    def tell_time(self, now_ms: str) -> None:
        self.at = ClockReading(int(now_ms), 0)
        self._locks.end_due(self.at)

    def _state(self) -> str:
        partition = self.partition
        can_acquire = partition.can_acquire()
        text = (
            f"{'; '.join(self._events)} | {partition.start_offset} {partition.end_offset} "
            f"complete {partition.delivery_complete_count} next {partition.next_fetch_offset()} "
            f"{'free' if can_acquire else 'full'} |"
        )
        self._events.clear()
        for batch in partition.in_flight:
            if batch.whole is not None:
                text += f" {batch.first_offset}-{batch.last_offset}:{_state_text(batch.whole)}"
                continue
            states = batch.states(batch.first_offset, batch.last_offset)
            text += " [" + "".join(f" {at}:{_state_text(each)}" for at, each in states) + " ]"
        return text


def _null(message: str | None) -> str:
    return "null" if message is None else message


def _state_text(state: RecordState) -> str:
    changing = "*" if state.is_changing else ""
    return f"{int(state.state)}x{state.delivery_count}{state.member_id}{changing}"


def _write_text(write: ShareStateWrite) -> str:
    batches = [f"{first}-{last}:{state}x{count}" for first, last, state, count in write.batches]
    return (
        f"write {write.state_epoch} {write.leader_epoch} {write.start_offset} "
        f"{write.delivery_complete_count} {','.join(batches)}"
    )


def _log_batch(text: str) -> LogBatch:
    offsets, _, kind = text.partition(":")
    first, last = (int(each) for each in offsets.split("-"))
    producer = PRODUCER if kind else -1
    return LogBatch(first, last, 70, producer, bool(kind), kind == "a")

"""Crash scenarios of the metadata quorum: whole nodes run a story, one disk is crashed.

A `QuorumScenario` plays a story of `script` (elections, writes, truncations, snapshots taken,
fetched and installed, cleaning, changes of the voter set) and has every change of one node's disk
enumerated. `verify` opens the disk after a crash with the production code and compares it with the
promises of that moment (`promises`): no vote lost, nothing acknowledged lost, no gap between log
and snapshot, no partial snapshot taken as whole, nothing that was never written, and a second start
like the first. For some states the whole node is started: it must refuse a second vote in an epoch,
grant one in the next, and lead if it is the only voter.

Not here: the stories (`stories`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kraft_wire.model import ElectionState, StorageError
from kraft_wire.node.config.quorum_config import static_voters
from kraft_wire.node.quorum.metadata_opening import OpenedMetadata, open_metadata_log
from kraft_wire.sim.crash.harness import Outcome, Recorder
from kraft_wire.sim.crash.promises import (
    Departed,
    Promise,
    PromiseKeeper,
    QuorumTruth,
    Replay,
    TruthRecorder,
)
from kraft_wire.sim.crash.service import what_is_refused
from kraft_wire.sim.disk.files import SimFileSystem
from kraft_wire.sim.judge.invariants import SAFETY
from kraft_wire.sim.judge.judge import Judge
from kraft_wire.sim.judge.log_watch import LogWatch, newest_voters
from kraft_wire.sim.machine import Machine
from kraft_wire.sim.runs.script import Player, StoryError
from kraft_wire.sim.setup import ROOT, node_config
from kraft_wire.sim.world import World
from kraft_wire.storage.directory.log_directory import METADATA_PARTITION, LogDirectory
from kraft_wire.storage.recovery.damage import inspect
from kraft_wire.storage.recovery.repair import cut
from kraft_wire.storage.segment import CorruptLog

__all__ = ["QuorumScenario", "Variant"]

_WALL_MS: Final = 1_800_000_000_000
_SERVES_EVERY: Final = 16
"""One state in that many is started as a whole node and asked."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a story: the cluster, and the node whose disk is crashed."""

    cluster: str
    """Words after `cluster`; the seed among them decides the elections."""
    victim: int


class QuorumScenario:
    """A story, played in several variants; see the module."""

    def __init__(self, name: str, story: str, variants: list[Variant]) -> None:
        self.name = name
        self._story = [line.strip() for line in story.splitlines() if line.strip()]
        self._variants = variants
        self._truth = QuorumTruth()
        self._machine: Machine | None = None
        self._judged = 0
        self._second_starts: dict[int, int] = {}
        """Disks after recovery, each in its cluster, and the state after a start, as hashes."""

    def run(self, recorder: Recorder) -> None:
        """Run the story in every variant.

        With some seeds a story is impossible (the leader that it writes to has just resigned): such
        a variant is skipped. There must be few, or the story is wrong. With disks that break their
        promises a story changes once power is lost in it: there the variant ends.
        """
        played, impossible = 0, 0
        for variant in self._variants:
            if recorder.has_enough:
                break
            try:
                self._truth = self._true_story(variant, recorder.sector_bytes)
            except StoryError:
                impossible += 1
                continue
            try:
                self._record(variant, recorder)
            except Departed:
                if recorder.keeps_its_word:
                    raise
            played += 1
        assert impossible <= max(3, played // 4), (self.name, played, impossible)

    def _true_story(self, variant: Variant, sector_bytes: int) -> QuorumTruth:
        """Run it once, under all invariants and with a disk that keeps its promises.

        Sectors matter: if power is lost in the story, they decide the remaining content.
        """
        chronicles: list[TruthRecorder] = []

        def chronicle(judge: Judge) -> TruthRecorder:
            chronicles.append(TruthRecorder(judge))
            return chronicles[0]

        def shape(world: World) -> None:
            world.machines[variant.victim].fs.sector_bytes = sector_bytes

        player = Player((*SAFETY, chronicle), shape)
        for line in self._lines(variant):
            player.do(line)
            assert player.world is not None, line
            shape(player.world)
        return chronicles[0].truth

    def _lines(self, variant: Variant) -> Iterator[str]:
        yield f"cluster {variant.cluster}"
        for line in self._story:
            yield line.replace("VICTIM", str(variant.victim))

    def _record(self, variant: Variant, recorder: Recorder) -> None:
        """Run it again, and have the victim's disk watched."""
        keepers: list[PromiseKeeper] = []
        watched: list[SimFileSystem] = []

        def keeper(judge: Judge) -> PromiseKeeper:
            cuts = self._truth.cuts.get(variant.victim, [])
            keepers.append(PromiseKeeper(judge, variant.victim, cuts))
            return keepers[0]

        def watch(world: World) -> None:
            machine = self._machine = world.machines[variant.victim]
            fs = machine.fs
            if watched and watched[-1] is fs:
                return
            if watched and machine.generation > len(lost):
                keepers[0].forget()
                lost.append(fs)
            watched.append(fs)
            recorder.prepare(fs)
            recorder.watch(fs, lambda: keepers[0].at(machine.life, fs.changes_count))

        lost: list[SimFileSystem] = []
        player = Player((keeper, lambda judge: Replay(judge, self._truth)), watch)
        for line in self._lines(variant):
            player.do(line)
            assert player.world is not None, line
            watch(player.world)
        recorder.finish()

    # -- judging ---------------------------------------------------------------------------------

    def verify(self, fs: SimFileSystem, ledger: object, is_ordered: bool) -> Outcome:
        """Open the remaining disk, judge it, open it again, and start a node on it."""
        assert isinstance(ledger, Promise), ledger
        outcome = Outcome([])
        before = fs.everything()
        opened = self._opened(fs, is_ordered, outcome)
        if opened is None:
            return outcome
        seen = LogWatch()
        seen.look(fs)
        outcome.violations += self._what_is_wrong(seen, opened, ledger)
        if fs.everything() != before:
            self._open_again(fs, opened, seen, outcome)
        self._judged += 1
        if self._judged % _SERVES_EVERY == 0 and not outcome.violations:
            fs.before_change = None
            assert self._machine is not None, self.name
            outcome.violations += what_is_refused(self._machine, fs, ledger, seen)
        return outcome

    def _opened(
        self, fs: SimFileSystem, is_ordered: bool, outcome: Outcome
    ) -> OpenedMetadata | None:
        """Open; where the log is refused, cut as an operator does, and open again."""
        try:
            return self._open(fs)
        except CorruptLog as damage:
            outcome.is_refused = True
            if is_ordered:
                outcome.violations.append(f"refused although nothing is out of order: {damage}")
        except StorageError as error:
            outcome.violations.append(f"does not start: {error}")
            return None
        try:
            for found in inspect(fs, ROOT, METADATA_PARTITION):
                cut(fs, ROOT, found)
            return self._open(fs)
        except StorageError as error:
            outcome.violations.append(f"cannot be cut: {error}")
            return None

    def _open(self, fs: SimFileSystem) -> OpenedMetadata:
        machine = self._machine
        assert machine is not None, self.name
        config = node_config(machine.setup, machine.id)
        directory = LogDirectory.open(fs, ROOT)
        try:
            return open_metadata_log(
                fs, directory, config.settings, static_voters(config), _WALL_MS
            )
        finally:
            directory.release()

    def _open_again(
        self, fs: SimFileSystem, opened: OpenedMetadata, seen: LogWatch, outcome: Outcome
    ) -> None:
        """A disk that recovery changed must stay unchanged by another start."""
        first = _digest(opened, seen)
        assert self._machine is not None, self.name
        # A static quorum's voters are in no file: a start also depends on the cluster.
        fingerprint = hash((self._machine.setup, frozenset(fs.everything().items())))
        known = self._second_starts.get(fingerprint)
        if known is not None:  # a start from the same bytes was checked before
            if known != first:
                outcome.violations.append("a second start gives another state than the first")
            return
        self._second_starts[fingerprint] = first
        try:
            again = self._open(fs)
        except StorageError as error:
            outcome.violations.append(f"a second start fails: {error}")
            return
        looked = LogWatch()
        looked.look(fs)
        if _digest(again, looked) != first:
            outcome.violations.append("a second start gives another state than the first")

    def _what_is_wrong(self, seen: LogWatch, opened: OpenedMetadata, owed: Promise) -> list[str]:
        return [
            *self._wrong_log(seen, opened),
            *self._wrong_snapshots(seen, opened, owed),
            *self._wrong_election(seen, opened.election, owed),
            *_lost_records(seen, opened, owed),
            *_wrong_voters(seen, opened),
        ]

    def _wrong_log(self, seen: LogWatch, opened: OpenedMetadata) -> Iterator[str]:
        """S07, S11, S12: whole batches without a gap, each as it was written there."""
        if seen.unread_bytes:
            yield f"{seen.unread_bytes} bytes behind the last whole batch"
        if seen.end_offset != opened.log.log_end_offset:
            yield f"the log ends at {seen.end_offset}, not {opened.log.log_end_offset}"
        for batch in seen.batches:
            known = self._truth.placed.get((batch.epoch, batch.base_offset))
            if known is None or known[0] != batch.crc:
                yield f"offset {batch.base_offset} holds bytes that were never written there"
        for one, other in pairwise(seen.batches):
            if one.end_offset != other.base_offset:
                yield f"a hole in the log between {one.end_offset} and {other.base_offset}"
            known = self._truth.placed.get((other.epoch, other.base_offset), (0, -1))
            if one.epoch > other.epoch or known[1] not in (-1, one.epoch):
                yield f"epoch {other.epoch} follows epoch {one.epoch} at {other.base_offset}"

    def _wrong_snapshots(
        self, seen: LogWatch, opened: OpenedMetadata, owed: Promise
    ) -> Iterator[str]:
        """S13, S14: a snapshot is whole, and reaches the log's start."""
        for key, snapshot in seen.snapshots.items():
            if snapshot.data not in self._truth.snapshots.get(key, ()):
                yield f"snapshot {key} is not a whole one"
        newest = max((offset for offset, _ in seen.snapshots), default=0)
        if newest < opened.log.log_start_offset:
            yield f"the log starts at {opened.log.log_start_offset}, snapshots end at {newest}"
        if newest > seen.end_offset:
            yield f"the log ends at {seen.end_offset}, before its snapshot at {newest}"
        if newest < owed.snapshot_offset:
            yield f"the announced snapshot at {owed.snapshot_offset} is lost"

    def _wrong_election(
        self, seen: LogWatch, election: ElectionState | None, owed: Promise
    ) -> Iterator[str]:
        """S02, S03: the epoch does not fall, and the vote in it stays."""
        found = seen.election
        if found is None:
            if owed.epoch:
                yield f"epoch {owed.epoch} is forgotten"
            return
        assert election is not None, found
        if (election.leader_epoch, election.voted_id) != (found.epoch, found.voted_id):
            yield f"the vote reads {election}, and is {found}"
        if not owed.epoch <= found.epoch <= self._truth.epoch_max:
            yield f"epoch {found.epoch} after {owed.epoch}"
        if found.epoch == owed.vote[0] and found.voted_id != owed.vote[1]:
            yield f"the vote for {owed.vote[1]} in epoch {found.epoch} is forgotten"
        if found.voted_id >= 0 and self._machine is not None:
            voted = self._truth.votes.get((found.epoch, self._machine.id), found.voted_id)
            if voted != found.voted_id:
                yield f"a vote for {found.voted_id} in epoch {found.epoch} was never given"


def _lost_records(seen: LogWatch, opened: OpenedMetadata, owed: Promise) -> Iterator[str]:
    """S10, S20: acknowledged records are in the log, or in a snapshot."""
    end = owed.end_offset
    covered = max((offset for offset, _ in seen.snapshots), default=0)
    if end <= covered:
        return
    if seen.start_offset > covered:
        yield f"a hole between the snapshot at {covered} and the log at {seen.start_offset}"
    if seen.end_offset < end:
        yield f"acknowledged up to {end}, the log ends at {seen.end_offset}"
        return
    last = seen.batch_before(end)
    if owed.end_epoch >= 0 and (last is None or last.epoch != owed.end_epoch):
        found = None if last is None else last.epoch
        yield f"the acknowledged record before {end} is of epoch {found}, not {owed.end_epoch}"
    assert opened.log.log_end_offset >= end, (opened.log.log_end_offset, end)


def _wrong_voters(seen: LogWatch, opened: OpenedMetadata) -> Iterator[str]:
    """S17: the voter set in force is that of the newest record, committed or not."""
    newest = newest_voters(seen)
    if newest is None:
        return
    record, _ = newest
    expected = [(voter.voter_id, bytes(voter.voter_directory_id)) for voter in record.voters]
    nodes = opened.voters.latest.nodes.values()
    found = [(node.key.id, bytes(node.key.directory_id)) for node in nodes]
    if sorted(found) != sorted(expected):
        yield f"the voters are {found} instead of {expected}"


def _digest(opened: OpenedMetadata, seen: LogWatch) -> int:
    """Return a hash of all that a restart must reproduce."""
    voters = opened.voters.latest.nodes.values()
    return hash(
        (
            opened.log.log_start_offset,
            opened.log.log_end_offset,
            tuple(batch.identity for batch in seen.batches),
            tuple(opened.log.snapshots.ids),
            opened.election,
            tuple(node.key for node in voters),
            opened.voters.kraft_version,
        )
    )

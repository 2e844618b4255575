"""`python -m tests.audit.chaos [--cycles N] [--minutes M] [--seed S] [--keep DIR]`: chaos, audited.

The directories that a chaos run of the quorum leaves (`tests.chaos`) are audited by the command,
with a ledger of every write that a client was told is safe: no error. Then acknowledged records are
taken away on copies, so cleanly that no other proposition is broken, and the ledger must tell of
each loss once. Exit code 1 where it is otherwise.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from kraft_wire.metadata.records import decode_record
from kraft_wire.sim.judge.history import Operation
from kraft_wire.sim.judge.ledger import change_of
from kraft_wire.storage.directory.log_directory import LogDirectory
from kraft_wire.storage.log_config import LogConfig
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.records.batch_builder import build_batch
from kraft_wire.wire.records.record import Record
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.chaos import network
from tests.chaos.__main__ import say
from tests.chaos.campaign import Campaign
from tests.chaos.quorum import NODES
from tests.chaos.verdict import judge
from tests.mixed.log_bytes import PARTITION, batches

METADATA = PARTITION.rpartition("-")[0]
KRAFT_WIRE = str(Path(sys.executable).parent / "kraft-wire")
LOST_LAST = 10
"""Acknowledged writes behind the cut."""
WRITES_MIN = 40
"""Enough for a loss in the middle, however little the faults let through."""
AUDIT_SECONDS_MAX = 600
Json = dict[str, object]


@dataclass(frozen=True)
class Left:
    """What a run left: directories by node, offsets of acknowledged writes, the high watermark."""

    directories: Mapping[int, Path]
    acks: Path
    acknowledged: Sequence[int]
    high_watermark: int

    def copied(self, home: Path) -> dict[int, Path]:
        """Copies that may be damaged."""
        shutil.rmtree(home, ignore_errors=True)
        found = {}
        for node_id, data in self.directories.items():
            found[node_id] = home / data.name
            shutil.copytree(data, found[node_id])
        return found


def run_chaos(
    home: Path, cycles: int, minutes: float, seed: int, *, is_networked: bool = True
) -> Left:
    """Run the cycles; AssertionError where the run's own judge finds anything."""
    with ExitStack() as stack:
        net = None
        if is_networked and network.missing() is None:
            net = stack.enter_context(network.Network(NODES))
        campaign = Campaign(home, net, seed, say)
        outcome = campaign.run(cycles, minutes * 60, WRITES_MIN)
    assert not outcome.died, outcome.died
    directories = {each.node_id: each.data for each in campaign.quorum.nodes.values()}
    verdict = judge(outcome.operations, directories, outcome.high_watermark)
    assert not verdict.violations, verdict.violations
    faults = ", ".join(f"{n} {kind}" for kind, n in sorted(outcome.faults.items()))
    say(f"{outcome.cycles} cycles ({faults}), epoch {outcome.epochs}, {verdict.outcomes}")
    acks = home / "acks.jsonl"
    offsets = write_acks(outcome.operations, directories[NODES[0]], acks)
    return Left(directories, acks, offsets, outcome.high_watermark)


def write_acks(operations: Sequence[Operation], data: Path, acks: Path) -> list[int]:
    """Write the ledger, one line for each acknowledged write; returns their offsets, ascending.

    A client is not told the offset of its write; no value is written twice, so the log that the
    judge has compared tells it.
    """
    places: dict[object, tuple[int, int]] = {}
    for base_offset, content in sorted(batches(data).items()):
        batch = RecordBatch(memoryview(content))
        if batch.is_control:
            continue
        for at, record in enumerate(batch.records()):
            value = bytes(record.value or b"")
            change = change_of(decode_record(value).record)
            places.setdefault(change, (base_offset + at, zlib.crc32(value)))
    told = [
        places[each.register, each.value]
        for each in operations
        if each.kind == "write" and each.outcome == "ok"
    ]
    lines = [
        {"topic": METADATA, "partition": 0, "offset": offset, "crc32": checksum}
        for offset, checksum in told
    ]
    acks.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return sorted({offset for offset, _ in told})


def audited(directories: Sequence[Path], *options: str) -> tuple[list[Json], Json]:
    """Errors and warnings, and the summary, as `kraft-wire audit --json` prints them."""
    command = [KRAFT_WIRE, "audit", *map(str, directories), "--json", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=AUDIT_SECONDS_MAX
    )
    assert done.returncode in (0, 1), done.stderr
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    found = [line for line in lines if line["severity"] != "info"]
    errors = [line for line in found if line["severity"] == "error"]
    summary: Json = last["summary"]
    assert (done.returncode, summary["errors"]) == (int(bool(errors)), len(errors))
    return found, summary


def lose_end(data: Path, offset: int) -> None:
    """Cut the log before an offset as storage itself cuts, and take away what was made of it."""
    directory = LogDirectory.open(OsFileSystem(), str(data))
    log = directory.open_metadata_log(LogConfig(segment_bytes=1 << 30), 0)
    assert log.truncate_to(offset)
    log.close()
    directory.close()
    forget_snapshots(data, int(log.log_end_offset))


def rewrite_value(data: Path, offset: int) -> None:
    """Change one byte of a record's value, under a right checksum."""
    for segment in sorted((data / PARTITION).glob("*.log"), reverse=True):
        if int(segment.stem) <= offset:
            break
    content = segment.read_bytes()
    base, old = max((at, each) for at, each in batches(data).items() if at <= offset)
    batch = RecordBatch(memoryview(old))
    records = []
    for at, record in enumerate(batch.records()):
        value = bytes(record.value or b"")
        if base + at == offset:
            value = value[:-2] + bytes([value[-2] ^ 1]) + value[-1:]
        records.append(Record(None, value, base + at, record.timestamp))
    new = build_batch(
        records, base_offset=base, partition_leader_epoch=batch.partition_leader_epoch
    )
    assert content.count(old) == 1
    assert len(new) == len(old)
    segment.write_bytes(content.replace(old, bytes(new)))
    forget_snapshots(data, offset)


def forget_snapshots(data: Path, offset: int) -> None:
    """Remove the snapshots that hold more than the log before an offset."""
    for path in (data / PARTITION).glob("*.checkpoint"):
        if path.stem[:1].isdigit() and int(path.stem.partition("-")[0]) > offset:
            path.unlink()


def planted(left: Left, home: Path, victims: Sequence[int] = NODES) -> list[str]:
    """Plant each loss on copies; returns what was not told as it should be."""
    acks = ["--acks", str(left.acks)]
    cut = left.acknowledged[-LOST_LAST]
    wrong = []

    def expect(name: str, found: list[Json], check: str, offset: int, node: int | None) -> None:
        told = [(each["check"], each["topic"], each["offset"], each["node"]) for each in found]
        is_right = len(told) == 1 and told[0][:3] == (check, METADATA, offset)
        if not is_right or (node is not None and told[0][3] != str(node)):
            wrong.append(f"{name}: wanted one {check} at {offset}, found {found}")
        detail = found[0]["detail"] if found else "nothing"
        say(f"{'found' if is_right else 'WRONG'}: {name}: {told}, {detail}")

    copies = left.copied(home / "everywhere")
    for data in copies.values():
        lose_end(data, cut)
    without, _ = audited(list(copies.values()))
    if without:
        wrong.append(f"end lost everywhere: told without a ledger: {without}")
    found, _ = audited(list(copies.values()), *acks)
    expect("end lost everywhere", found, "acknowledged", cut, None)

    copies = left.copied(home / "value")
    for data in copies.values():
        rewrite_value(data, cut)
    found, _ = audited(list(copies.values()), *acks)
    expect("value rewritten everywhere", found, "acknowledged", cut, None)

    for victim in victims:
        copies = left.copied(home / "one")
        lose_end(copies[victim], cut)
        found, _ = audited([copies[victim]], *acks)
        expect(f"end lost on {victim}, audited alone", found, "acknowledged", cut, victim)
        told = home / "high-watermark.json"
        told.write_text(json.dumps({METADATA: {"0": left.high_watermark}}))
        found, _ = audited(list(copies.values()), *acks, "--high-watermark", str(told))
        end = max(batches(copies[victim]))
        name = f"end lost on {victim}, beside two that have it"  # a warning: it may be catching up
        expect(name, found, "below-high-watermark", end_of(copies[victim], end), victim)
    return wrong


def end_of(data: Path, base_offset: int) -> int:
    """The log end, behind the batch with this base offset."""
    return int(RecordBatch(memoryview(batches(data)[base_offset])).next_offset)


def main() -> int:
    """Run, audit, plant."""
    parser = argparse.ArgumentParser(prog="make chaos-audit")
    parser.add_argument("--cycles", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=60.0, help="of the cycles, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-network", action="store_true", help="kills and pauses only")
    parser.add_argument("--keep", type=Path, help="a folder for directories, logs and the ledger")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kraft-wire-audit-") as scratch:
        home = given.keep or Path(scratch)
        left = run_chaos(
            home / "chaos",
            given.cycles,
            given.minutes,
            given.seed,
            is_networked=not given.no_network,
        )
        found, summary = audited(list(left.directories.values()), "--acks", str(left.acks))
        say(f"{len(left.acknowledged)} acknowledged writes, {summary}")
        wrong = [f"after the run: {each}" for each in found]
        wrong += planted(left, home / "planted")
    for line in wrong:
        print(line)
    print(f"{summary['errors']} errors after the run, {len(wrong)} things not as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

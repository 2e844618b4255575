"""What clients were told, held against the logs that the nodes left.

The log says what was committed and in which order; the simulator's judge of histories does the rest
(`kraft_wire.sim.judge.history`): an acknowledged write is in the log, writes that followed one
another in time do so in the log, no producer id is given twice, and every register has an order
that explains all that was written and read. Two nodes' logs are the same, byte for byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kraft_wire.metadata.records import decode_record
from kraft_wire.sim.judge.history import History, Operation
from kraft_wire.sim.judge.ledger import Ledger, change_of
from kraft_wire.sim.judge.violation import Violation
from kraft_wire.wire.records.record_batch import RecordBatch
from tests.mixed.log_bytes import batches, compare


@dataclass
class Verdict:
    """What a run showed."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Operations by kind and outcome."""
    registers: int = 0
    """Registers whose history has an order that explains it."""
    committed: int = 0
    compared_bytes: int = 0
    violations: list[str] = field(default_factory=list)
    lost: int = 0
    """Acknowledged writes that are not in the log."""

    @property
    def acknowledged(self) -> int:
        """Writes and producer ids that somebody was promised."""
        return self.outcomes["write ok"] + self.outcomes["producer-id ok"]


def judge(
    operations: Sequence[Operation], directories: dict[int, Path], high_watermark: int
) -> Verdict:
    """Judge a whole run; `high_watermark` is the last that a leader told."""
    verdict = Verdict(committed=high_watermark)
    try:
        verdict.compared_bytes = compare(directories, high_watermark).size_bytes
    except AssertionError as difference:
        verdict.violations.append(f"logs differ: {difference}")
    history = History(ledger_of(next(iter(directories.values())), high_watermark))
    done = [each for each in operations if each.returned_us is not None]
    for operation in sorted(done, key=lambda each: each.returned_us or 0):
        history.invoked(operation)
        try:
            history.returned(operation, operation.returned_us or 0, operation.outcome)
        except Violation as violation:
            verdict.violations.append(str(violation))
            verdict.lost += violation.invariant == "S10 AckedIsCommitted"
    verdict.outcomes.update(history.counts)
    try:
        verdict.registers = history.judge_registers()
    except Violation as violation:
        verdict.violations.append(str(violation)[:2_000])
    return verdict


def ledger_of(directory: Path, high_watermark: int) -> Ledger:
    """Read from a node's log what was committed where."""
    ledger = Ledger()
    for base_offset, data in sorted(batches(directory).items()):
        batch = RecordBatch(memoryview(data))
        if base_offset >= high_watermark or batch.is_control:
            continue
        for at, record in enumerate(batch.records()):
            change = change_of(decode_record(bytes(record.value or b"")).record)
            if change is not None:
                ledger.offsets.setdefault(change, []).append(base_offset + at)
    return ledger

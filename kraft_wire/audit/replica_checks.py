"""Checks about one replica by itself: `crc`, `gap`, `epoch`, `producer`.

Decided over batch headers, never over record values. Each fault is one finding: a damaged stretch
is not reported again as a gap, if the log continues behind it at the right offset.
"""

from collections.abc import Iterator

import numpy as np

from kraft_wire.audit.fault import Fault
from kraft_wire.audit.finding import NO_OFFSET, NOWHERE, Finding
from kraft_wire.audit.layout import finding_at, layout_of
from kraft_wire.audit.replica import Replica
from kraft_wire.columnar.arrays import Bools, Int64s
from kraft_wire.storage.leader_epochs import FILE_NAME as EPOCHS_FILE
from kraft_wire.wire.records.record_batch import MAGIC

__all__ = ["check_crc", "check_epoch", "check_gap", "check_producer", "epoch_faults"]

_SEQUENCES: int = 1 << 31


def check_crc(replica: Replica) -> Iterator[Finding]:
    """`crc`: every byte belongs to a whole batch with a right checksum.

    A torn end of the last segment is a warning: a crash leaves it, and recovery truncates it.
    """
    return (each.finding for each in layout_of(replica).faults if each.finding.check == "crc")


def check_gap(replica: Replica) -> Iterator[Finding]:
    """`gap`: each batch begins where the one before ended, at the seams of segments too.

    Below the log start a warning; in compacted topics only the order counts. Where damage is
    between two batches, `crc` has named it.
    """
    return (each.finding for each in layout_of(replica).faults if each.finding.check == "gap")


def check_epoch(replica: Replica) -> Iterator[Finding]:
    """`epoch`: leader epochs never go back, and begin at the leader-epoch checkpoint's offsets."""
    return (each.finding for each in epoch_faults(replica, layout_of(replica).rows)[0])


def epoch_faults(replica: Replica, rows: Int64s) -> tuple[list[Fault], Int64s]:
    """Return the faults of `epoch` among sound rows, and the rows with doubtful epochs.

    Rows that follow one another and differ for the same reason are one fault. Messages of formats 0
    and 1 have no epoch.
    """
    batches = replica.batches
    rows = rows[batches.magic[rows] >= MAGIC]
    epochs = batches.leader_epoch[rows]
    lasts = batches.last_offset[rows]  # a batch across the log start counts from there
    begins_at = np.clip(replica.log_start_offset, batches.base_offset[rows], lasts)
    checkpointed = _checkpointed_epochs(replica, lasts)
    checkpointed_first = _checkpointed_epochs(replica, begins_at)
    checkpointed = np.where(
        (checkpointed == epochs) & (checkpointed_first >= 0), checkpointed_first, checkpointed
    )
    wrong = (epochs < 0) | ((checkpointed >= 0) & (checkpointed != epochs))
    if not wrong.any():
        wrong = _outliers(epochs)
    begins = np.flatnonzero(wrong & ~np.concatenate(([False], wrong[:-1])))
    faults = _checkpoint_faults(replica)
    for index in begins.tolist():
        after = np.flatnonzero(~wrong[index:])
        end = index + int(after[0]) if len(after) else len(rows)
        detail = f"leader epoch {epochs[index]}"
        if checkpointed[index] >= 0 and checkpointed[index] != epochs[index]:
            detail += f", the checkpoint has {checkpointed[index]}"
        elif index:
            detail += f" after {epochs[index - 1]}"
        fault = finding_at(replica, "epoch", "error", int(rows[index]), detail)
        last = int(batches.last_offset[rows[end - 1]])
        faults.append(Fault(fault, int(batches.base_offset[rows[index]]), last + 1))
    return faults, rows[wrong]


def _checkpoint_faults(replica: Replica) -> list[Fault]:
    """Return the fault of a checkpoint that cannot be read: it explains no offset."""
    if not replica.epochs_damage:
        return []
    finding = Finding(
        *("epoch", "error", replica.node, replica.topic, replica.partition, NO_OFFSET),
        *(EPOCHS_FILE, NOWHERE, f"the checkpoint is damaged: {replica.epochs_damage}"),
    )
    return [Fault(finding, 0, 0)]


def _checkpointed_epochs(replica: Replica, offsets: Int64s) -> Int64s:
    """Return the checkpoint's epoch of each offset, -1 for those before its first."""
    if not replica.leader_epochs:
        return np.full(len(offsets), -1, np.int64)
    names, starts = np.array(replica.leader_epochs, np.int64).T
    place = np.searchsorted(starts, offsets, side="right") - 1
    return np.where(place >= 0, names[np.maximum(place, 0)], -1)


def _outliers(epochs: Int64s) -> Bools:
    """Return the epochs that are out of order: if one goes back, the one that fits less."""
    wrong = np.zeros(len(epochs), np.bool_)
    for index in np.flatnonzero(epochs[1:] < epochs[:-1]).tolist():
        fits_without_first = index == 0 or epochs[index - 1] <= epochs[index + 1]
        wrong[index if fits_without_first else index + 1] = True
    return wrong


def check_producer(replica: Replica) -> Iterator[Finding]:
    """`producer`: the sequences of a producer's epoch follow one another, modulo 2^31 (KIP-98).

    Deleted or compacted batches are unknown, so a producer's first batch may begin anywhere, and an
    expired producer may begin at 0 again. Replicas with other faults are not judged.
    """
    batches = replica.batches
    is_whole = batches.is_valid.all() and not layout_of(replica).faults
    if replica.is_compacted or not is_whole:
        return
    is_produced = (batches.base_sequence >= 0) & ~batches.is_control
    rows = np.flatnonzero(is_produced & (batches.last_offset >= replica.log_start_offset))
    order = np.lexsort((rows, batches.producer_epoch[rows], batches.producer_id[rows]))
    rows = rows[order]
    width = batches.last_offset[rows] - batches.base_offset[rows] + 1
    after = (batches.base_sequence[rows] + width) % _SEQUENCES
    is_same = (batches.producer_id[rows[1:]] == batches.producer_id[rows[:-1]]) & (
        batches.producer_epoch[rows[1:]] == batches.producer_epoch[rows[:-1]]
    )
    sequence = batches.base_sequence[rows[1:]]
    is_odd = is_same & (sequence != after[:-1]) & (sequence > 0)
    # a batch that follows the one before an odd batch, had that been right, is not odd itself
    goes_on = sequence[1:] == (after[:-2] + width[1:-1]) % _SEQUENCES
    is_odd[1:] &= ~(is_odd[:-1] & goes_on)
    odd = np.flatnonzero(is_odd)
    for index in sorted(odd.tolist(), key=lambda at: int(rows[at + 1])):
        row = int(rows[index + 1])
        producer = f"producer {batches.producer_id[row]} epoch {batches.producer_epoch[row]}"
        detail = f"{producer}: sequence {batches.base_sequence[row]}, not {after[index]}"
        yield finding_at(replica, "producer", "error", row, detail)

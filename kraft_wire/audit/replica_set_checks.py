"""Checks about all replicas of one partition: `log-matching`, `divergence`, `below-high-watermark`.

Compacted topics differ between replicas by design. The metadata log is not read here: the ISR is an
argument.
"""

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from kraft_wire.audit.comparison import Disagreement, disagreements
from kraft_wire.audit.fault import END_OF_LOG, Fault
from kraft_wire.audit.finding import NO_OFFSET, NOWHERE, Finding, Severity
from kraft_wire.audit.layout import Layout, layout_of
from kraft_wire.audit.replica import Replica, segment_file
from kraft_wire.columnar.log_windows import Status

__all__ = [
    "beginning_faults",
    "check_below_high_watermark",
    "check_divergence",
    "check_log_matching",
    "disagreement_fault",
    "highest_watermark",
    "loss_faults",
]


def check_log_matching(replicas: Sequence[Replica]) -> Iterator[Finding]:
    """`log-matching`: the same (base offset, epoch) means the same (crc, size) on every node.

    The checksum leaves out base offset and epoch, and bit rot leaves the stored one as it was:
    damaged batches are the business of `crc`, and are not compared.
    """
    return _disagreeing(replicas, "log-matching", NO_OFFSET)


def check_divergence(replicas: Sequence[Replica], high_watermark: int) -> Iterator[Finding]:
    """`divergence`: below the high watermark all have the same epochs and boundaries.

    Above it a replica may hold uncommitted records: information.
    """
    return _disagreeing(replicas, "divergence", high_watermark)


def _disagreeing(replicas: Sequence[Replica], check: str, high_watermark: int) -> Iterator[Finding]:
    layouts = [layout_of(replica) for replica in replicas]
    by_node = {layout.replica.node: layout for layout in layouts}
    for each in disagreements(layouts):
        finding = disagreement_fault(each, by_node[each.odd[0]], high_watermark).finding
        if finding.check == check:
            yield finding


def disagreement_fault(each: Disagreement, layout: Layout, high_watermark: int) -> Fault:
    """Return the fault of a disagreement; `layout` is that of the first odd node."""
    replica = layout.replica
    batches = replica.batches
    ends_log = each.last_offset >= int(batches.base_offset[layout.rows[-1]])
    extent = "" if each.last_offset == each.first_offset else f" to {each.last_offset}"
    severity: Severity = "error"
    if each.same_place:
        check = "log-matching"
        detail = f"batch of epoch {each.epochs[0]} differs from the one that others have"
    else:
        check = "divergence"
        severity = "error" if each.first_offset < high_watermark else "info"
        what = "leader epochs" if len(each.epochs) > 1 else "the boundaries of batches"
        detail = f"{what} differ" + (f" ({each.epochs})" if len(each.epochs) > 1 else "")
        detail += f", the high watermark is {high_watermark}"
    if extent:
        detail += f"; so do the following ones{extent}"
    finding = Finding(
        check,
        severity,
        ",".join(each.odd),
        replica.topic,
        replica.partition,
        each.first_offset,
        batches.file(each.row) if each.row >= 0 else "",
        int(batches.position[each.row]) if each.row >= 0 else NOWHERE,
        detail,
    )
    bases = batches.base_offset[layout.rows]
    last = layout.rows[np.searchsorted(bases, each.last_offset, side="right") - 1]
    end = max(each.last_offset, int(batches.last_offset[last])) + 1
    return Fault(finding, each.first_offset, END_OF_LOG if ends_log else end)


def beginning_faults(layouts: Sequence[Layout]) -> list[Fault]:
    """Return one `gap` for each replica whose first files are missing without a deletion.

    It is a warning if no other replica contradicts: a crash may come between the deletion of files
    and its record.
    """
    faults = []
    for layout in layouts:
        replica = layout.replica
        if replica.lost_from < 0:
            continue
        first = min(replica.segments)
        others = [each.replica for each in layouts if each is not layout]
        is_elsewhere = any(each.log_start_offset < first for each in others)
        severity: Severity = "error" if is_elsewhere else "warn"
        finding = Finding(
            *("gap", severity, replica.node, replica.topic, replica.partition),
            *(replica.lost_from, segment_file(first), NOWHERE),
            f"the log begins at {first}, its leader epochs at {replica.lost_from}",
        )
        faults.append(Fault(finding, replica.lost_from, first))
    return faults


def highest_watermark(replicas: Sequence[Replica], reported: int = NO_OFFSET) -> int:
    """Return the largest high watermark that was seen: each is true, though it may be old."""
    return max([reported, *(replica.high_watermark for replica in replicas)])


def check_below_high_watermark(
    replicas: Sequence[Replica], isr: Collection[str] | None, reported: int = NO_OFFSET
) -> Iterator[Finding]:
    """`below-high-watermark`: a replica ends at or above the largest known high watermark.

    A replica that ends below has lost data: an error in the ISR (nodes as text; None for unknown),
    outside it a warning.
    """
    layouts = [layout_of(replica) for replica in replicas]
    return (fault.finding for fault in loss_faults(layouts, isr, reported))


def loss_faults(
    layouts: Sequence[Layout], isr: Collection[str] | None, reported: int = NO_OFFSET
) -> list[Fault]:
    """Return one fault for each replica that ends too early, one for all if none reaches it."""
    # offsets before a log start were committed, even if the log does not reach it any more
    starts = [each.replica.log_start_offset for each in layouts]
    ends = [each.log_end_offset for each in layouts]
    beyond = [start for start, end in zip(starts, ends, strict=True) if end < start]
    highest = max([highest_watermark([each.replica for each in layouts], reported), *beyond])
    short = [layout for layout in layouts if layout.log_end_offset < highest]
    if len(short) == len(layouts) > 1:
        witnesses = [each for each in short if _says(each.replica, highest)] or short
        replica, nodes = witnesses[0].replica, ",".join(each.replica.node for each in witnesses)
        detail = f"no replica reaches the high watermark {highest}: they end at {sorted(ends)}"
        finding = Finding(
            "below-high-watermark",
            *("error", nodes, replica.topic, replica.partition, max(ends)),
            *(_last_file(replica), NOWHERE, detail),
        )
        return [Fault(finding, max(ends))]
    return [_loss(layout, layouts, highest, isr) for layout in short]


def _says(replica: Replica, offset: int) -> bool:
    """Whether it is by this replica's directory that everything before an offset is committed."""
    return offset in (replica.high_watermark, replica.log_start_offset)


def _loss(
    layout: Layout, layouts: Sequence[Layout], highest: int, isr: Collection[str] | None
) -> Fault:
    replica, end = layout.replica, layout.log_end_offset
    is_nameless = bool(isr) and not replica.node.isdecimal()  # its directory has no node id
    is_in_sync = isr is None or replica.node in isr or is_nameless
    severity: Severity = "error" if is_in_sync else "warn"
    detail = f"log ends at {end}, the high watermark is {highest}"
    position = NOWHERE
    check = "below-high-watermark"
    if layout.torn_row is not None:
        torn = int(replica.batches.size_bytes[layout.torn_row])
        position = int(replica.batches.position[layout.torn_row])
        detail += f"; {torn} bytes after it are not a batch"
        if any(_bytes_from(other, end) == torn for other in layouts if other is not layout):
            check = "crc"  # nothing is missing: the bytes there are damaged
    finding = Finding(
        *(check, severity, replica.node, replica.topic, replica.partition, end),
        *(_last_file(replica), position, detail),
    )
    return Fault(finding, end)


def _bytes_from(layout: Layout, offset: int) -> int:
    """Return how many bytes the batches from an offset on take; -1 if damage is among them."""
    batches = layout.replica.batches
    before = layout.rows[batches.last_offset[layout.rows] < offset]
    begin = int(before.max()) + 1 if len(before) else 0
    is_whole = bool(np.all(batches.status[begin:] == Status.OK))
    return int(batches.size_bytes[begin:].sum()) if is_whole else -1


def _last_file(replica: Replica) -> str:
    if replica.segments:
        return segment_file(max(replica.segments))
    return replica.batches.file(-1) if len(replica.batches) else ""

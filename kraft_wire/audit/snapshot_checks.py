"""`snapshot`: a metadata snapshot equals the log before it, and is the same on every node.

Snapshots are the same if their records have the same content, in any order: nodes write their
snapshots themselves, the batches carry the time of writing, and other releases list the features of
a node in another order or leave out zeros. The caller knows whether the log reaches back far
enough: if it does not, only the copies are compared with each other. One finding an id: a damaged
copy, the odd one among copies, or all copies if none agrees with the log. The snapshot (0, 0) that
formatting writes differs from node to node in the time of formatting, and is only read.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final

from kraft_wire.audit.finding import NOWHERE, Finding
from kraft_wire.audit.partition_audit import METADATA_TOPIC
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import OffsetAndEpoch
from kraft_wire.storage.snapshots.metadata_snapshot import snapshot_name

__all__ = ["SnapshotCopy", "check_snapshot"]

_PARTITION: Final = 0
_NOT_CONTENT: Final = frozenset({"offset", "epoch", "finalized_features_epoch"})
"""Fields of an image about its log, which a snapshot does not hold."""


@dataclass(frozen=True, slots=True)
class SnapshotCopy:
    """One file of one node."""

    node: str
    digest: bytes
    """The same for the same records."""
    controls: bytes
    """The same for the control records, which an image does not have."""
    image: MetadataImage | None
    """None if the file is damaged."""
    damage: str = ""
    position: int = NOWHERE


def check_snapshot(
    snapshot_id: OffsetAndEpoch,
    copies: Sequence[SnapshotCopy],
    folded: MetadataImage | None,
    log_epoch: int | None,
    *,
    is_inside_batch: bool = False,
    is_unreached: bool = False,
) -> Iterator[Finding]:
    """Judge all copies of one snapshot.

    `folded` is the image of the log up to the snapshot's end, None where the log does not say;
    `log_epoch` the epoch of the last record before the end, None likewise; `is_inside_batch`: the
    log has a batch around the end, which no follower could append behind the snapshot;
    `is_unreached`: no log goes as far, and most nodes have no snapshot that does.
    """
    whole = [copy for copy in copies if copy.image is not None]
    for copy in copies:
        if copy.image is None:
            yield _finding(snapshot_id, [copy.node], copy.damage, copy.position)
    if not whole or snapshot_id.offset == 0:
        return
    nodes = [copy.node for copy in whole]
    if is_unreached:
        yield _finding(snapshot_id, nodes, "the snapshot ends above every log")
        return
    if is_inside_batch:
        yield _finding(snapshot_id, nodes, "the snapshot ends inside a batch of the log")
        return
    if log_epoch is not None and log_epoch != snapshot_id.epoch:
        detail = f"the log has epoch {log_epoch} before the end of the snapshot"
        yield _finding(snapshot_id, nodes, detail)
        return
    odd, detail = _odd_copies(whole, folded)
    if odd:
        yield _finding(snapshot_id, [copy.node for copy in odd], detail)


def _odd_copies(
    whole: list[SnapshotCopy], folded: MetadataImage | None
) -> tuple[list[SnapshotCopy], str]:
    """Return the copies that are wrong, and why the first of them is."""
    if folded is not None:
        reasons = {copy.digest: "" for copy in whole}
        for copy in whole:
            if copy.image is not None and not reasons[copy.digest]:
                reasons[copy.digest] = _difference(copy.image, folded)
        false = [copy for copy in whole if reasons[copy.digest]]
        if false:
            return false, f"differs from the log before it: {reasons[false[0].digest]}"
    kinds = _kinds(whole)
    usual, count = Counter(kinds).most_common(1)[0]
    if count == len(whole):
        return [], ""
    is_majority = 2 * count > len(whole)
    odd = [
        copy for copy, kind in zip(whole, kinds, strict=True) if not is_majority or kind != usual
    ]
    return odd, "the records differ from those of other nodes"


def _kinds(whole: list[SnapshotCopy]) -> list[int]:
    """Return a number for each copy, the same for equal content."""
    known: list[SnapshotCopy] = []
    kinds: list[int] = []
    for copy in whole:
        kind = next((at for at, each in enumerate(known) if _says_the_same(each, copy)), len(known))
        if kind == len(known):
            known.append(copy)
        kinds.append(kind)
    return kinds


def _says_the_same(one: SnapshotCopy, other: SnapshotCopy) -> bool:
    if one.digest == other.digest:
        return True
    assert one.image is not None, one.node
    assert other.image is not None, other.node
    return one.controls == other.controls and not _difference(one.image, other.image)


def _difference(image: MetadataImage, folded: MetadataImage) -> str:
    """Return where two images differ, empty where they do not."""
    for each in fields(MetadataImage):
        if each.name in _NOT_CONTENT:
            continue
        mine, logged = getattr(image, each.name), getattr(folded, each.name)
        if mine == logged:
            continue
        if not isinstance(mine, dict) or not isinstance(logged, dict):
            return f"{each.name} is {mine}, not {logged}"
        keys = [key for key in {**mine, **logged} if mine.get(key) != logged.get(key)]
        return f"{each.name} differ in {len(keys)} entries, the first is {keys[0]!r}"
    return ""


def _finding(
    snapshot_id: OffsetAndEpoch, nodes: list[str], detail: str, position: int = NOWHERE
) -> Finding:
    return Finding(
        *("snapshot", "error", ",".join(sorted(nodes)), METADATA_TOPIC, _PARTITION),
        *(snapshot_id.offset, snapshot_name(snapshot_id), position, detail),
    )

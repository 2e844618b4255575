"""One finding an id: the damaged copy, the odd one, or all where none agrees with the log."""

from __future__ import annotations

from dataclasses import replace

from kraft_wire.audit import Finding
from kraft_wire.audit.snapshot_checks import SnapshotCopy, check_snapshot
from kraft_wire.metadata.image import EMPTY_IMAGE, MetadataImage
from kraft_wire.model import LeaderEpoch, Offset, OffsetAndEpoch

ID = OffsetAndEpoch(Offset(10), LeaderEpoch(2))
TRUE = replace(EMPTY_IMAGE, offset=9, epoch=2, next_producer_id=1000)
FALSE = replace(TRUE, next_producer_id=2000)


def copy(
    node: str, image: MetadataImage | None, *, controls: bytes = b"", **facts: str
) -> SnapshotCopy:
    digest = controls + b"%d" % (0 if image is None else image.next_producer_id)
    return SnapshotCopy(node, digest, controls, image, **facts)  # type: ignore[arg-type]  # facts of a test


def findings(
    *copies: SnapshotCopy, log: MetadataImage | None = TRUE, **facts: bool
) -> list[Finding]:
    return list(check_snapshot(ID, copies, log, ID.epoch, **facts))


def test_equal_copies_that_agree_with_the_log_are_clean() -> None:
    at_another_offset = replace(TRUE, offset=500, epoch=7, finalized_features_epoch=3)
    assert findings(copy("1", TRUE), copy("2", at_another_offset)) == []
    assert findings() == []


def test_copy_that_differs_from_the_log_is_named_even_alone() -> None:
    (found,) = findings(copy("1", TRUE), copy("2", FALSE))
    assert (found.node, found.offset, found.check) == ("2", 10, "snapshot")
    assert "next_producer_id is 2000, not 1000" in found.detail
    (found,) = findings(copy("1", FALSE))
    assert found.node == "1"


def test_without_the_log_the_odd_one_of_three_is_named_and_both_of_two() -> None:
    three = (copy("1", FALSE), copy("2", TRUE), copy("3", TRUE))
    assert [found.node for found in findings(*three, log=None)] == ["1"]
    assert [found.node for found in findings(*three[:2], log=None)] == ["1,2"]


def test_copies_that_say_the_same_in_other_records_are_the_same() -> None:
    """3.9.1 writes a record of the migration from ZooKeeper, features stand in any order."""
    in_other_records = replace(copy("1", TRUE), digest=b"other")
    for log in (TRUE, None):
        assert findings(in_other_records, copy("2", TRUE), copy("3", TRUE), log=log) == []
    other_voters = copy("3", TRUE, controls=b"voters")
    (found,) = findings(in_other_records, copy("2", TRUE), other_voters)
    assert found.node == "3"


def test_damaged_copy_is_named_with_its_place() -> None:
    damaged = copy("3", None, damage="no footer at the end")
    (found,) = findings(copy("1", TRUE), damaged)
    assert (found.node, found.detail) == ("3", "no footer at the end")


def test_id_that_the_log_contradicts_is_a_finding() -> None:
    (found,) = check_snapshot(ID, [copy("1", TRUE)], TRUE, ID.epoch + 1)
    assert "the log has epoch 3" in found.detail
    (found,) = findings(copy("1", TRUE), is_inside_batch=True)
    assert "inside a batch" in found.detail

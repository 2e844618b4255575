"""Changes of a partition's small files, and of its lines in the checkpoints of its directory."""

from __future__ import annotations

from tests.apache.odd_directories.file_changes import (
    Change,
    added,
    cut_by,
    emptied,
    entry,
    removed,
    replaced,
    text,
)

__all__ = ["CHECKPOINT_LINES", "EPOCHS", "TOPIC_IDS"]

_EPOCHS, _ID = "leader-epoch-checkpoint", "partition.metadata"

EPOCHS: dict[str, Change] = {
    "epochs missing": removed(_EPOCHS),
    "epochs empty": emptied(_EPOCHS),
    "epochs: none": text(_EPOCHS, "0\n0\n"),
    "epochs: beyond the end": text(_EPOCHS, "0\n3\n0 0\n2 12\n5 99\n"),
    "epochs: at the end": text(_EPOCHS, "0\n3\n0 0\n2 12\n3 16\n"),
    "epochs: the last one missing": text(_EPOCHS, "0\n1\n0 0\n"),
    "epochs: the first one missing": text(_EPOCHS, "0\n1\n2 12\n"),
    "epochs: one that no batch has": text(_EPOCHS, "0\n3\n0 0\n1 9\n2 12\n"),
    "epochs: begins too early": text(_EPOCHS, "0\n2\n0 0\n2 9\n"),
    "epochs: begins too late": text(_EPOCHS, "0\n2\n0 0\n2 14\n"),
    "epochs: first begins too late": text(_EPOCHS, "0\n2\n0 5\n2 12\n"),
    "epochs: higher than the batches": text(_EPOCHS, "0\n2\n0 0\n7 12\n"),
    "epochs: one twice": text(_EPOCHS, "0\n3\n0 0\n2 12\n2 12\n"),
    "epochs: one at two offsets": text(_EPOCHS, "0\n3\n0 0\n2 12\n2 14\n"),
    "epochs: two at one offset": text(_EPOCHS, "0\n3\n0 0\n1 12\n2 12\n"),
    "epochs: other order": text(_EPOCHS, "0\n2\n2 12\n0 0\n"),
    "epochs: offsets go down": text(_EPOCHS, "0\n2\n0 12\n2 0\n"),
    "epochs: negative epoch": text(_EPOCHS, "0\n2\n-1 0\n2 12\n"),
    "epochs: negative offset": text(_EPOCHS, "0\n2\n0 -1\n2 12\n"),
    "epochs: no last newline": text(_EPOCHS, "0\n2\n0 0\n2 12"),
    "epochs: lines of Windows": text(_EPOCHS, "0\r\n2\r\n0 0\r\n2 12\r\n"),
    "epochs: tabs": text(_EPOCHS, "0\n2\n0\t0\n2   12\n"),
    "epochs: leading zeros": text(_EPOCHS, "0\n2\n0 00\n2 012\n"),
    "epochs: version without a count": text(_EPOCHS, "0\n"),
    "epochs: version 1": text(_EPOCHS, "1\n2\n0 0\n2 12\n"),
    "epochs: wrong count": text(_EPOCHS, "0\n3\n0 0\n2 12\n"),
    "epochs: a word": text(_EPOCHS, "0\n2\n0 0\n2 x\n"),
    "epochs: three words": text(_EPOCHS, "0\n2\n0 0 0\n2 12\n"),
    "epochs: noise": text(_EPOCHS, "\1\2\3\n"),
    "epochs: a blank line": text(_EPOCHS, "0\n2\n0 0\n\n2 12\n"),
}

_OTHER = "AAECAwQFBgcICQoLDA0ODw"
TOPIC_IDS: dict[str, Change] = {
    "topic id missing": removed(_ID),
    "topic id of another topic": text(_ID, f"version: 0\ntopic_id: {_OTHER}"),
    "topic id with a last newline": added(_ID, b"\n"),
    "topic id with lines of Windows": replaced(_ID, "0\n", "0\r\n"),
    "topic id with spaces": replaced(_ID, "topic_id: ", "topic_id:   "),
    "topic id with a further line": added(_ID, b"\nmore: 1"),
    "topic id empty": emptied(_ID),
    "topic id cut": cut_by(_ID, 6),
    "topic id without a version": replaced(_ID, "version: 0\n", ""),
    "topic id of version 1": replaced(_ID, "version: 0", "version: 1"),
    "topic id of zeros": text(_ID, "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"),
}

_POINTS, _WATERMARKS = "recovery-point-offset-checkpoint", "replication-offset-checkpoint"
_STARTS, _CLEANED = "log-start-offset-checkpoint", "cleaner-offset-checkpoint"

CHECKPOINT_LINES: dict[str, Change] = {
    "recovery point missing": entry(_POINTS),
    "recovery point 0": entry(_POINTS, 0),
    "recovery point within a segment": entry(_POINTS, 11),
    "recovery point beyond the end": entry(_POINTS, 99),
    "high watermark missing": entry(_WATERMARKS),
    "high watermark 0": entry(_WATERMARKS, 0),
    "high watermark in the middle": entry(_WATERMARKS, 11),
    "high watermark beyond the end": entry(_WATERMARKS, 99),
    "log start in the first segment": entry(_STARTS, 3),
    "log start at a segment": entry(_STARTS, 9),
    "log start in the last segment": entry(_STARTS, 13),
    "log start in a batch": entry(_STARTS, 5),
    "log start in the open transaction": entry(_STARTS, 16),
    "log start beyond the end": entry(_STARTS, 99),
    "cleaned up to the middle": entry(_CLEANED, 9),
    "cleaned beyond the end": entry(_CLEANED, 99),
}

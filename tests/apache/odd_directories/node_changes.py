"""Changes that concern a whole node: of identities, shared files, folders and the quorum."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.apache.odd_directories import file_changes as files
from tests.apache.odd_directories.file_changes import Change

__all__ = ["REFUSED_BY_BOTH", "TAKEN_BY_BOTH"]

_META, _MARK, _STATE = "meta.properties", ".kafka_cleanshutdown", "quorum-state"
_CLUSTER = "__cluster_metadata-0"
_OTHER_ID = "AAECAwQFBgcICQoLDA0ODw"


def _within(directory: str, change: Change) -> Change:
    """Make a change in a directory below the folder of a node."""
    return lambda folder: change(folder / directory)


def _meta(change: Callable[[str], str]) -> Change:
    """Rewrite the meta.properties of the second directory, as Latin-1."""

    def rewrite(folder: Path) -> None:
        file = folder / "more" / _META
        before = file.read_text()
        after = change(before)
        assert after != before, before
        file.write_bytes(after.encode("latin-1"))

    return rewrite


def _line(key: str, new: str) -> Change:
    """Replace a line of meta.properties."""
    return _meta(
        lambda text: "".join(
            f"{new if line.startswith(f'{key}=') else line}\n" for line in text.splitlines()
        )
    )


def _edited(text: str) -> str:
    """Return a meta.properties that a person has been at."""
    spaced = text.replace("version=1", "version : 1").replace("node.id=", "node\\u002eid = \\\n  ")
    return ("# für uns\n\n! and\n" + spaced + "node.id=1\nfurther=1\nlonely").replace("\n", "\r\n")


def _same_identity(folder: Path) -> None:
    shutil.copy2(folder / "data" / _META, folder / "more" / _META)


def _other_order(folder: Path) -> None:
    """Exchange the directories, as another order of `log.dirs` does."""
    (folder / "data").rename(folder / "x")
    (folder / "more").rename(folder / "data")
    (folder / "x").rename(folder / "more")


def _copied_folder(name: str) -> Change:
    """Add a folder with the files of a partition."""

    def change(folder: Path) -> None:
        shutil.copytree(next(folder.glob("*/odd-0")), folder / "more" / name)

    return change


def _exchanged_place(folder: Path) -> None:
    """Move a partition to the other directory."""
    here = next(folder.glob("*/odd-1"))
    other = "more" if here.parent.name == "data" else "data"
    here.rename(folder / other / "odd-1")


TAKEN_BY_BOTH: dict[str, Change] = {
    "identity that a person has edited": _meta(_edited),
    "clean mark of noise": _within("more", files.text(_MARK, "\1\2noise")),
    "high watermarks missing": _within("more", files.removed("replication-offset-checkpoint")),
    "recovery points empty": _within("data", files.emptied("recovery-point-offset-checkpoint")),
    "cleaner offsets empty": _within("data", files.emptied("cleaner-offset-checkpoint")),
    "deleted folder": _copied_folder(f"odd-0.{'0123456789abcdef' * 2}-delete"),
    "stray folder": _copied_folder(f"odd-0.{'0123456789abcdef' * 2}-stray"),
    "file beside the logs": _within("more", files.text("notes.txt", "x")),
    "file with the name of a log": _within("more", files.text("ghost-0", "x")),
    "log in the other directory": _exchanged_place,
    "quorum-state with a newline": _within(f"data/{_CLUSTER}", files.added(_STATE, b"\n")),
    "temporary quorum-state": _within(f"data/{_CLUSTER}", files.text(_STATE + ".tmp", "x")),
    "metadata log with zeros behind": _within(
        f"data/{_CLUSTER}", files.added(f"{0:020}.log", bytes(900))
    ),
    "metadata indexes missing": _within(f"data/{_CLUSTER}", files.removed("*index")),
    "metadata topic id missing": _within(f"data/{_CLUSTER}", files.removed("partition.metadata")),
    "metadata epochs missing": _within(
        f"data/{_CLUSTER}", files.removed("leader-epoch-checkpoint")
    ),
    "part of a metadata snapshot": _within(
        f"data/{_CLUSTER}", files.text(f"{5:020}-{1:010}.checkpoint.part", "x")
    ),
    "deleted metadata snapshot": _within(
        f"data/{_CLUSTER}", files.text(f"{5:020}-{1:010}.checkpoint.deleted", "x")
    ),
    "bootstrap.checkpoint missing": _within("data", files.removed("bootstrap.checkpoint")),
}
"""They are independent, so one start judges them all."""

REFUSED_BY_BOTH: dict[str, tuple[Change, str]] = {
    "log.dirs in another order": (_other_order, "Found unexpected metadata location in data "),
    "reserved directory.id": (_line("directory.id", "directory.id=" + "A" * 22), "reserved"),
    "identity of the other directory": (_same_identity, "the same directory.id"),
    "identity missing": (_within("more", files.removed(_META)), "is not formatted"),
    "other node.id": (_line("node.id", "node.id=7"), "belongs to node 7"),
    "other cluster.id": (_line("cluster.id", f"cluster.id={_OTHER_ID}"), "belongs to cluster"),
    "quorum-state empty": (_within(f"data/{_CLUSTER}", files.emptied(_STATE)), "quorum-state"),
    "quorum-state of version 9": (
        _within(f"data/{_CLUSTER}", files.replaced(_STATE, 'version":0', 'version":9')),
        "unknown data_version 9",
    ),
    "log starts of version 1": (
        _within("more", files.replaced("log-start-offset-checkpoint", "0\n", "1\n")),
        "log-start-offset-checkpoint: line 1 is not version 0",
    ),
}
"""With a part of the words of our refusal."""

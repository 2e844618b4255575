"""`kraft-wire repair`: shows what is damaged in a log directory, and on demand cuts it away.

The node must be stopped: the command takes the directory's lock. Without `--cut` nothing changes.
Exit codes: 0 nothing wrong or all repaired, 1 damage found and not cut, 2 could not run.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Annotated, Final

import typer
from rich.console import Console

from kraft_wire.model import FsyncFailed, StorageError, TopicPartition
from kraft_wire.storage.directory.log_directory import (
    LOCK,
    METADATA_PARTITION,
    partition_of_directory,
)
from kraft_wire.storage.directory.meta_properties import read_meta_properties
from kraft_wire.storage.files import FileSystem, LockHeld
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.storage.recovery.damage import Damage, inspect, partitions_of
from kraft_wire.storage.recovery.repair import cut as cut_damage
from kraft_wire.wire.json_form import Json

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_FOUND: Final = 1
_COULD_NOT_RUN: Final = 2


class _CannotRun(Exception):
    """Why the command cannot do its work, as one line."""


@dataclass(slots=True)
class _Finding:
    """One damage, and the side files that keep the bytes cut out."""

    damage: Damage
    kept: list[str] = field(default_factory=list)
    is_cut: bool = False


@app.command()
def repair(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="One entry of log.dirs.")],
    partition: Annotated[
        str | None, typer.Option(metavar="TOPIC-N", help="Check this log only.")
    ] = None,
    cut: Annotated[
        bool, typer.Option("--cut", help="Remove damaged parts and keep a copy of them.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing (default).")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Verify every batch of every log, and remove damage with --cut."""
    errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    try:
        findings, checked = _repair(directory.rstrip("/") or "/", partition, cut and not dry_run)
    except (_CannotRun, StorageError, FsyncFailed) as error:
        errors.print(f"kraft-wire repair: {error}", markup=False)
        raise typer.Exit(_COULD_NOT_RUN) from error
    if as_json:
        print(json.dumps(_as_json(directory, findings, checked)))
    else:
        _show(directory, findings, checked, is_cutting=cut and not dry_run)
    if not all(finding.is_cut for finding in findings):
        raise typer.Exit(_FOUND)


def _repair(path: str, partition: str | None, is_cutting: bool) -> tuple[list[_Finding], int]:
    """Check, and cut if requested; return the damage and the number of logs read."""
    fs = OsFileSystem()
    with _locked(fs, path):
        if read_meta_properties(fs, path) is None:
            raise _CannotRun(f"{path} is not a formatted log directory: no meta.properties")
        chosen = _chosen(fs, path, partition)
        findings: list[_Finding] = []
        for each in chosen:
            findings += _handle(fs, path, each, is_cutting)
        return findings, sum(each is not None for each in chosen)


@contextmanager
def _locked(fs: FileSystem, path: str) -> Iterator[None]:
    """Keep a node from starting meanwhile."""
    if not fs.exists(path) or not fs.is_directory(path):
        raise _CannotRun(f"{path} is not a directory")
    try:
        lock = fs.lock(f"{path}/{LOCK}")
    except LockHeld:
        raise _CannotRun(f"{path} is locked: stop the node that is using it") from None
    try:
        yield
    finally:
        lock.release()


def _chosen(fs: FileSystem, path: str, name: str | None) -> list[TopicPartition | None]:
    """Return the logs to check; None means their shared files."""
    known = partitions_of(fs, path)
    if name is None:
        return [None, *known]
    wanted = partition_of_directory(name)
    if wanted not in known:
        raise _CannotRun(f"{path} contains no log of {name}")
    return [wanted]


def _handle(
    fs: FileSystem, path: str, partition: TopicPartition | None, is_cutting: bool
) -> list[_Finding]:
    """Check one log until no more damage is found, because damage can hide other damage."""
    findings: list[_Finding] = []
    while True:
        found = [_Finding(damage) for damage in inspect(fs, path, partition)]
        known = {finding.damage for finding in findings}
        fresh = [finding for finding in found if finding.damage not in known]
        findings += fresh
        for finding in fresh:
            if is_cutting and finding.damage.can_be_cut:
                finding.kept = cut_damage(fs, path, finding.damage)
                finding.is_cut = True
        if not any(finding.is_cut for finding in fresh):
            return findings


def _as_json(path: str, findings: list[_Finding], checked: int) -> Json:
    damage: list[Json] = []
    for finding in findings:
        facts: dict[str, Json] = asdict(finding.damage)
        partition = finding.damage.partition
        facts["partition"] = None if partition is None else str(partition)
        damage.append({**facts, "is_cut": finding.is_cut, "kept": list(finding.kept)})
    return {"directory": path, "logs_checked": checked, "damage": damage}


def _show(path: str, findings: list[_Finding], checked: int, *, is_cutting: bool) -> None:
    console = Console(highlight=False, soft_wrap=True, emoji=False)
    for finding in findings:
        _show_finding(console, finding)
    what = f"{checked} logs in {path} checked"
    left = sum(not finding.is_cut for finding in findings)
    if not findings:
        console.print(f"{what}: no damage", markup=False)
    elif not left:
        console.print(f"{what}: all damage is removed; the node can be started", markup=False)
    elif is_cutting:
        console.print(f"{what}: {left} left that cannot be removed", markup=False)
    else:
        console.print(f"{what}; to remove the shown damage, repeat with --cut", markup=False)


def _show_finding(console: Console, finding: _Finding) -> None:
    damage = finding.damage
    console.print(f"{damage.partition or 'all logs'}", style="bold red", markup=False)
    lines = [("file", f"{damage.path} at byte {damage.position}"), ("reason", damage.reason)]
    if damage.first_offset is not None:
        end = "" if damage.last_offset is None else f"..{damage.last_offset}"
        what = f"offsets {damage.first_offset}{end}, {damage.cut_bytes} bytes"
        lines.append(("to cut", f"{what}, {damage.readable_batches} readable batches among them"))
    lines.append(("then", damage.consequence))
    if damage.partition == METADATA_PARTITION and damage.readable_batches:
        lines.append(("note", "logs of topics removed with it are renamed to -stray"))
    lines += [("kept", kept) for kept in finding.kept]
    for name, text in lines:
        console.print(f"  {name:<8}{text}", markup=False)

"""A directory of results that exists as a whole or not at all.

Everything is written beside its final place, under a name that begins with a dot. One rename ends
it, once all of it is on the disk: a loss of power leaves no files without content under the final
name. The parent directory must be shared by driver and workers. A killed run leaves such a dot
directory, which is never read and may be deleted.
"""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from kraft_wire.audit.output_place import log_directory_around
from kraft_wire.spark.failure import PipelineError

__all__ = ["keep_only", "refuse_log_directories", "refuse_output", "staged"]


@contextmanager
def staged(output: str, *, overwrite: bool = False, reading: Sequence[str] = ()) -> Iterator[Path]:
    """Yield a new directory that becomes `output` when the body ends, and is removed if it fails.

    Errors: those of `refuse_output`, at once.
    """
    target = refuse_output(output, overwrite=overwrite, reading=reading)
    with _as_lines(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(".part", f".{target.name}.", target.parent))
        staging.chmod(0o777 & ~_mask())
    try:
        yield staging
        with _as_lines(target):
            for path in (*staging.rglob("*"), staging):
                _sync(path)
            _move(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def refuse_output(output: str, *, overwrite: bool = False, reading: Sequence[str] = ()) -> Path:
    """Return the directory to write. Errors: PipelineError if it is refused.

    It is refused if it is not empty (unless `overwrite`), if it is in a log directory, and if it
    holds the input, which would be removed. A verb calls this before it starts a session.
    """
    target = _target(output)
    refuse_log_directories(str(target), reading)
    for each in reading:
        if Path(each).resolve().is_relative_to(target.resolve()):
            raise PipelineError(f"{target} holds {each}, which is read: give another directory")
    if target.exists() and not overwrite and (not target.is_dir() or any(target.iterdir())):
        raise PipelineError(f"{target} already exists: give another directory or --overwrite")
    return target


def refuse_log_directories(output: str, known: Sequence[str] = ()) -> None:
    """Raise PipelineError if `output` is in a log directory; `known` are some of those."""
    around = log_directory_around(output, known)
    if around is not None:
        raise PipelineError(f"{output} is inside the log directory {around}: give another one")


def keep_only(staging: Path, files: Iterable[str]) -> None:
    """Remove the files of failed attempts; `files` are relative paths."""
    wanted = {staging / name for name in files}
    for path in sorted(staging.rglob("*")):
        if path.is_file() and path not in wanted:
            path.unlink()


def _target(output: str) -> Path:
    scheme, separator, _ = output.partition("://")
    if separator and scheme != "file":
        raise PipelineError(f"{output}: give a directory that driver and workers share as a path")
    path = Path(output.removeprefix("file://")).absolute()
    if not path.name:
        raise PipelineError(f"{output} is not a directory")
    return path


def _move(staging: Path, target: Path) -> None:
    """Put the new directory in the place of the old one, if there is one."""
    old = staging.with_suffix(".old")
    if target.exists():
        os.replace(target, old)
    try:
        os.replace(staging, target)
    except OSError:
        if old.exists():
            os.replace(old, target)
        raise
    _sync(target.parent)
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    """Make a file's content or a directory's names durable, whichever process wrote them."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that syncs no directories
            raise
    finally:
        os.close(descriptor)


def _mask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextmanager
def _as_lines(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PipelineError(f"{error.filename or target}: {error.strerror or error}") from None

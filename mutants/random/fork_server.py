"""Work in a forked child that imports the package from a copy: no start of an interpreter, no mess.

The parent has imported what is slow and not ours, and nothing of `kraft_wire`. A child leads a
process group, which ends with it; its memory and time are bounded.
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from mutants.overlay import CHECKOUT

__all__ = ["Answer", "Tell", "Work", "forked", "preload"]

Tell = Callable[[dict[str, object]], None]
"""Takes one thing that a child has to say."""

Work = Callable[[Tell], None]

_SLOW_IMPORTS = (
    "pytest", "pytest_asyncio.plugin", "pytest_timeout", "hypothesis.strategies",
    "hypothesis.stateful", "hypothesis.internal.conjecture.engine", "numpy", "pyarrow.parquet",
    "pandas", "asyncio", "rich.table", "typer", "lz4.block", "lz4.frame", "zstandard", "cramjam",
    "yaml", "prometheus_client", "concurrent.futures.process",
)  # fmt: skip
_MEMORY_MAX = 6 << 30
_TAIL = 4_000
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclass(slots=True)
class Answer:
    """What a child's work came to."""

    lines: list[dict[str, object]]
    """What it told, one after another; the last line may be missing after a kill."""
    state: str
    """`done`, `timeout` or `broken`."""
    output: str
    """The end of its output, for what is broken."""


def preload() -> None:
    """Import what children would import again and again; what is not installed is left out."""
    os.environ.update(
        PYTHONHASHSEED="0",
        PYTHONDONTWRITEBYTECODE="1",
        PYTHONSAFEPATH="1",
        OPENBLAS_NUM_THREADS="1",
    )
    for name in _SLOW_IMPORTS:
        with suppress(ImportError):
            importlib.import_module(name)
    assert "kraft_wire" not in sys.modules, "a child could not import the copy"
    gc.collect()
    gc.freeze()


def forked(work: Work, root: Path, budget_s: float) -> Answer:
    """Run `work(tell)` in a child that imports the package below `root`, for `budget_s` at most."""
    with TemporaryDirectory(prefix="kraft-wire-judge-") as scratch:
        told, output = Path(scratch, "told"), Path(scratch, "output")
        told.touch()
        pid = os.fork()
        if pid == 0:
            _live(work, root, told, output)
        code = _waited(pid, budget_s)
        lines = [json.loads(one) for one in told.read_text().splitlines() if one.endswith("}")]
        text = output.read_text(errors="replace")[-_TAIL:] if output.exists() else ""
    state = "timeout" if code is None else "done" if code == 0 else "broken"
    return Answer(lines, state, text)


def _waited(pid: int, budget_s: float) -> int | None:
    """Return a child's exit code, or None when its time was up; nothing of its group is left."""
    descriptor = os.pidfd_open(pid)
    try:
        is_over = bool(select.select([descriptor], [], [], budget_s)[0])
    finally:
        os.close(descriptor)
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) if is_over else None


def _live(
    work: Work,
    root: Path,
    told: Path,
    output: Path,
) -> None:
    """Be the child, and end."""
    code = 2
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sink = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(sink, descriptor)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _move_to(root)
        with told.open("a", buffering=1) as file:
            work(lambda line: print(json.dumps(line), file=file))
        code = 0
    except BaseException:  # noqa: BLE001  # nothing of the child may run on in the parent's code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _move_to(root: Path) -> None:
    """Import from `root` from here on, in programs that are started too."""
    os.chdir(root)
    sys.dont_write_bytecode = True
    left_out = {"", str(CHECKOUT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)}
    sys.path[:] = [str(root), *(one for one in sys.path if one not in left_out)]
    sys.path_importer_cache.clear()
    os.environ["PYTHONPATH"] = str(root)

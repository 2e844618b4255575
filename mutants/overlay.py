"""A throw-away copy of the package in which a mutant lives; the checkout is never changed.

The copy holds `kraft_wire`, and links to everything else that tests read. A probe runs with it as
its working directory and first on the path.
"""

import compileall
import os
import py_compile
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkdtemp

__all__ = ["CHECKOUT", "Overlay"]

CHECKOUT = Path(__file__).resolve().parent.parent
_COPIED = "kraft_wire"
_LEFT_OUT = (".git", ".venv", _COPIED)


class Overlay:
    """One copy, used by one mutant at a time."""

    def __init__(self) -> None:
        self.root = Path(mkdtemp(prefix="kraft-wire-mutants-")).resolve()
        shutil.copytree(CHECKOUT / _COPIED, self.root / _COPIED)
        for entry in CHECKOUT.iterdir():
            if entry.name not in _LEFT_OUT:
                (self.root / entry.name).symlink_to(entry)

    def remove(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self.root, ignore_errors=True)

    @contextmanager
    def changed(self, sources: Mapping[str, str]) -> Iterator[None]:
        """Have other sources stand in the copy for a while."""
        kept = {name: (self.root / name).read_text(encoding="utf-8") for name in sources}
        try:
            for name, source in sources.items():
                self.write(name, source)
            yield
        finally:
            for name, source in kept.items():
                self.write(name, source)
                py_compile.compile(str(self.root / name), quiet=1)

    def compile(self) -> None:
        """Compile the whole copy, so that no probe has to."""
        compileall.compile_dir(self.root / _COPIED, quiet=2)

    def write(self, name: str, source: str) -> None:
        """Have another source stand in the copy."""
        path = self.root / name
        path.write_text(source, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    def run(self, arguments: list[str], budget_s: float) -> tuple[int | None, str]:
        """Run a module in the copy; its exit code, None after the budget, and its last output."""
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments],
            cwd=self.root,
            env={
                **os.environ,
                "PYTHONPATH": str(self.root),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONHASHSEED": "0",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=budget_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None, ""
        return process.returncode, output[-2_000:]

"""Whether everything is compiled that a start imports: without, it takes three times as long.

Python compiles a module anew in each process where no valid bytecode lies beside it, and nobody
writes it where `PYTHONDONTWRITEBYTECODE` is set. `make run` and the image compile when they
install.
"""

import json
import subprocess
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path
from struct import Struct
from typing import Final

__all__ = ["is_compiled", "require_bytecode", "uncompiled"]

_HEAD: Final = Struct("<4sIII")
"""Magic number, flags, and the source's time and size, or its hash where the flags are not 0."""
_IMPORTED: Final = """
import json, sys
import kraft_wire.cli.main, kraft_wire.cli.server.command
files = [getattr(module, "__file__", None) for module in sys.modules.values()]
print(json.dumps([file for file in files if file and file.endswith(".py")]))
"""


def is_compiled(source: Path) -> bool:
    """Tell whether this interpreter has bytecode of a module as it is now."""
    try:
        head = Path(cache_from_source(str(source))).read_bytes()[: _HEAD.size]
    except FileNotFoundError:
        return False
    magic, flags, time, size = _HEAD.unpack(head)
    status = source.stat()
    is_as_then = (time, size) == (int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF)
    return magic == MAGIC_NUMBER and (flags != 0 or is_as_then)


def uncompiled() -> list[Path]:
    """Return the modules of a node's start that have no bytecode."""
    command = [sys.executable, "-B", "-c", _IMPORTED]
    done = subprocess.run(command, capture_output=True, check=True)
    return [path for path in map(Path, json.loads(done.stdout)) if not is_compiled(path)]


def require_bytecode() -> None:
    """Refuse to measure where a start would be that of a compiler; SystemExit says what to do."""
    missing = uncompiled()
    if missing:
        sys.exit(
            f"not measured: {len(missing)} modules of a start have no bytecode, {missing[0]} is "
            "one; run `python -m compileall -q kraft_wire`"
        )

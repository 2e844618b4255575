"""The command that installs the packages of an extra; it works as it is printed.

The package is on no index, so that `kraft-wire[extra]` cannot be installed by name: the command
names the extra's own packages, for the interpreter that runs.
"""

import re
import shlex
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires

__all__ = ["install_command"]


def install_command(extra: str, missing: Sequence[str]) -> str:
    """Return a pip command for the packages of an extra; without metadata, for the missing ones."""
    try:
        listed = requires("kraft-wire") or ()
    except PackageNotFoundError:
        listed = ()
    marker = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    wanted = [each.partition(";")[0].strip() for each in listed if marker.search(each)]
    command = [sys.executable, "-m", "pip", "install", *(wanted or missing)]
    return shlex.join(command)

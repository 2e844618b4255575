"""`python -m tests.yielding COMMAND...`: run a command that gives way to every other program.

The command gets a processor only while no other program wants it (`SCHED_IDLE`). Linux may also
share processors between sessions first, whatever the priorities in them are; so the session that
the command is in gets the lowest share, if it is one of its own.
"""

import os
import sys
from contextlib import suppress
from pathlib import Path

LOWEST = 19


def give_way() -> None:
    """Lower the priority of this process, and of its session."""
    os.nice(LOWEST)
    if hasattr(os, "SCHED_IDLE"):
        with suppress(OSError):  # not allowed in some containers
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # a kernel without groups of sessions
            Path("/proc/self/autogroup").write_text(str(LOWEST), encoding="ascii")


if __name__ == "__main__":
    give_way()
    os.execvp(sys.argv[1], sys.argv[1:])

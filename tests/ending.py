"""How every process that a test started ends: nobody is left behind, whatever goes wrong meanwhile.

A process of which the last reference is dropped while it runs would fail some later test, with a
warning that names neither.
"""

from __future__ import annotations

import signal
import subprocess


def end(process: subprocess.Popen[bytes], number: signal.Signals, seconds_max: float) -> int:
    """Send a signal, wait, and return the exit code; whoever is too slow is killed, and told of."""
    try:
        process.send_signal(number)
        return process.wait(timeout=seconds_max)
    except BaseException:
        process.kill()
        process.wait()
        raise

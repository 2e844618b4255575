"""Ask ``kraft-wire wire decode`` or ``encode`` many questions at once, as an outside judge does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

WIRE_SECONDS_MAX = 1200


class WireCommandFailed(RuntimeError):
    """The command ended with an error or answered fewer lines than it was asked."""


def ask(verb: str, questions: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The answer to every question line, in order."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as answers:
        count = 0
        for question in questions:
            asked.write(question.encode() + b"\n")
            count += 1
        asked.seek(0)
        done = subprocess.run(
            [str(Path(sys.executable).parent / "kraft-wire"), "wire", verb],
            stdin=asked,
            stdout=answers,
            stderr=subprocess.PIPE,
            check=False,
            timeout=WIRE_SECONDS_MAX,
        )
        answers.seek(0)
        given = 0
        for line in answers:
            given += 1
            yield json.loads(line)
    if done.returncode != 0 or given != count:
        raise WireCommandFailed(
            f"wire {verb}: exit {done.returncode}, {given} answers to {count} questions\n"
            + done.stderr.decode(errors="replace")[-2000:]
        )

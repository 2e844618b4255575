"""The counting application as a process, which may be killed and started again over its state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, compiled
from tests.process import Process

__all__ = ["EXACTLY_ONCE", "STORE", "Application", "Mode"]

SOURCES = Path(__file__).parent / "java"
STORE = "counts"
HEAP_MB = 192


class Mode(NamedTuple):
    """How an application joins its group, and what it promises."""

    protocol: str = "classic"
    """The classic one, or `streams` (KIP-1071)."""
    guarantee: str = "exactly_once_v2"

    @property
    def is_exact(self) -> bool:
        """Whether a record is counted once however often something is killed."""
        return self == Mode(self.protocol)


EXACTLY_ONCE = Mode()


class Application(Process):
    """`judge.CountingStreams` from a source topic to a target topic."""

    main = "judge.CountingStreams"

    def __init__(
        self,
        home: Path,
        bootstrap: str,
        name: str,
        source: str,
        target: str,
        replicas: int,
        mode: Mode = EXACTLY_ONCE,
    ) -> None:
        super().__init__(home / f"{name}.log")
        state = home / f"{name}-state"
        self.changelog = f"{name}-{STORE}-changelog"
        self._arguments = [bootstrap, name, str(state), source, target, str(replicas), *mode]

    def command(self) -> Sequence[str]:
        path = jars.streams_classpath()
        classes = compiled((SOURCES,), path, jars.RELEASE)
        flags = [*LEAN_FLAGS, f"-Xmx{HEAP_MB}m", "-Djudge.level=WARN"]
        path = os.pathsep.join([str(classes), path])
        return ["java", *flags, "-cp", path, self.main, *self._arguments]

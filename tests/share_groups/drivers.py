"""Programs whose members share a topic, one for each client; see `judge.ShareDriver`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from tests.apache import jars
from tests.apache.java_process import LEAN_FLAGS, archive_flags, compiled
from tests.clients.registry import go_harness
from tests.share_groups.scenarios import SOURCES

__all__ = ["DRIVERS", "JAVA"]

JAVA = "java"
HEAP_MB = 192


def _java() -> list[str]:
    path = jars.classpath()
    path = os.pathsep.join([path, str(compiled((SOURCES,), path, jars.RELEASE))])
    flags = [*LEAN_FLAGS, *archive_flags(), f"-Xmx{HEAP_MB}m"]
    return ["java", *flags, "-cp", path, "judge.ShareDriver"]


DRIVERS: dict[str, Callable[[], list[str]]] = {
    JAVA: _java,
    "librdkafka": lambda: [sys.executable, "-m", "tests.share_groups.librdkafka_driver"],
    "franz-go": lambda: [*go_harness("franz-go")(), "shares"],
}
"""Commands, before BOOTSTRAP GROUP MEMBERS SEED."""

"""Apache's tools for groups of each kind, while a broker is killed and comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.apache.tools import run_tool

__all__ = ["wrong_in_tools"]

TOOLS = {
    "classic": "kafka-consumer-groups",
    "consumer": "kafka-consumer-groups",
    "share": "kafka-share-groups",
    "streams": "kafka-streams-groups",
}
"""By the kind of a group, the tool that shows it."""
TIMEOUT_MS = "60000"
SHOWN = 300
LISTED_S = 30.0


def wrong_in_tools(bootstrap: str, number: int) -> list[str]:
    """List the groups of each kind and describe the one of a number; return what is wrong."""
    server = ["--bootstrap-server", bootstrap]
    wrong = list(_unlisted("kafka-groups", server, [f"{kind}-{number}" for kind in TOOLS]))
    for kind, tool in TOOLS.items():
        group = f"{kind}-{number}"
        wrong += _unlisted(tool, server, [group])
        one = [*server, "--describe", "--group", group, "--timeout", TIMEOUT_MS]
        for what in ("--members", "--state", "--offsets"):
            done = run_tool(tool, [*one, what])
            if done.exit_code or group not in done.stdout or "Error" in done.text:
                wrong.append(f"{tool} {what} of {group}: {done.text[:SHOWN]}")
    return wrong


def _unlisted(tool: str, server: list[str], groups: list[str]) -> Iterator[str]:
    """Yield the groups that are not listed, once other brokers lead those of a killed one."""
    deadline = time.monotonic() + LISTED_S
    while True:
        done = run_tool(tool, [*server, "--list"])
        missing = sorted(set(groups) - set(done.stdout.split()))
        if not (done.exit_code or missing):
            return
        if time.monotonic() > deadline:
            yield f"{tool} --list lacks {missing}: {done.text[:SHOWN]}"
            return

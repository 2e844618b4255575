"""Run scenarios with one Python client.

``python -m tests.clients.python CLIENT BOOTSTRAP PREFIX SCENARIO…``; topics begin with the prefix.
One JSON line per scenario:
``{"scenario", "status": "ok" | "fail", "detail", "seconds"}``. Every harness of every language
takes the same arguments and prints the same lines.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from functools import cache

from tests.clients.python import security
from tests.clients.python.adapter import Adapter, ScenarioFailed
from tests.clients.python.scenarios import SCENARIOS

ADAPTERS = {
    "kcat": "kcat_adapter",
    "confluent-kafka": "confluent_adapter",
    "kafka-python": "kafka_python_adapter",
    "aiokafka": "aiokafka_adapter",
}


def topic_of(prefix: str, scenario: str) -> str:
    """The scenario's topic; both halves of a restart share one."""
    return f"{prefix}-{scenario.removesuffix('-before').removesuffix('-after')}"


def run(
    connected: Callable[[], Adapter], prefix: str, scenario: str, heard: Sequence[str] = ()
) -> dict[str, object]:
    """One scenario, whatever happens in it, as a line of the report.

    `heard` is what the client has said of a login, beside its exceptions.
    """
    started = time.monotonic()
    status, detail = "ok", ""
    try:
        SCENARIOS[scenario](connected(), topic_of(prefix, scenario))
    except ScenarioFailed as failure:
        status, detail = "fail", str(failure)
    except Exception as error:  # noqa: BLE001  # a client may raise anything; the table shows it
        where = traceback.extract_tb(error.__traceback__)[-1]
        status = "fail"
        detail = (
            f"{type(error).__name__}: {error} ({os.path.basename(where.filename)}:{where.lineno})"
        )
    if status == "fail":
        detail += "".join(f" | {each}" for each in heard)
    seconds = round(time.monotonic() - started, 2)
    return {"scenario": scenario, "status": status, "detail": detail, "seconds": seconds}


def main() -> int:
    """Run the named scenarios in order; a client's left-over threads do not hold up the end."""
    client, bootstrap, prefix, *scenarios = sys.argv[1:]
    module = importlib.import_module(f"tests.clients.python.{ADAPTERS[client]}")
    connected = cache(lambda: module.ADAPTER(bootstrap))
    for scenario in scenarios:
        print(json.dumps(run(connected, prefix, scenario, security.heard)), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()

"""`kraft-wire proxy`: stand in front of a Kafka, with faults and a decoded trace.

Exit codes: 0 stopped by a signal, 2 could not run.
"""

import asyncio
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Final

import typer

from kraft_wire.client.connection import BrokerConnectionError, split_address
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import EventLog
from kraft_wire.server.clock import wall_ms
from kraft_wire.testing.observed_server import add_rules_of_file, open_control
from kraft_wire.testing.proxy.server import Proxy

__all__ = ["app"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_COULD_NOT_RUN: Final = 2

Upstream = Annotated[
    str, typer.Option("--upstream", metavar="HOST:PORT", help="Address of the Kafka cluster.")
]
Listen = Annotated[str, typer.Option("--listen", metavar="HOST:PORT", help="Address for clients.")]
Faults = Annotated[
    str | None,
    typer.Option(
        "--faults", metavar="FILE", help="Inject the faults of a file of rules (YAML or JSON)."
    ),
]
Trace = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Append requests and responses as JSON lines."),
]
Control = Annotated[
    str | None,
    typer.Option("--control", metavar="HOST:PORT", help="Serve the HTTP API for rules there."),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file", metavar="FILE", help="Write JSON there once ready; remove it at exit."
    ),
]


@app.command()
def proxy(
    upstream: Upstream,
    listen: Listen = "127.0.0.1:9192",
    faults: Faults = None,
    trace: Trace = None,
    control: Control = None,
    ready_file: ReadyFile = None,
) -> None:
    """Relay clients to any Kafka cluster, with faults and a trace of requests."""
    log = EventLog(_write_line, wall_ms)
    try:
        place, _, port = listen.rpartition(":")
        if not place or not port.isdecimal():
            raise StartError(f"--listen {listen} is not an address of the form host:port")
        sidecar = Proxy((place, int(port)), split_address(upstream), log.event)
        if faults is not None:
            add_rules_of_file(sidecar.rules, faults)
        sidecar.recorder.trace_to(trace)
        _run(sidecar, control, ready_file)
    except (StartError, BrokerConnectionError, OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        sys.stderr.write(f"kraft-wire proxy: {reason}\n")
        raise typer.Exit(_COULD_NOT_RUN) from error


def _run(sidecar: Proxy, control: str | None, ready_file: Path | None) -> None:
    """Serve until a signal, on the fastest loop there is."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(_serve(sidecar, control, ready_file))
    else:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(sidecar, control, ready_file))


async def _serve(sidecar: Proxy, control: str | None, ready_file: Path | None) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    sidecar.listen()
    facts = {"listen": "{}:{}".format(*sidecar.address)}
    if control is not None:
        facts["control"] = await open_control(sidecar.rules, control)
    for name, address in facts.items():
        sys.stdout.write(f"kraft-wire proxy: {name} {address}\n")
    sys.stdout.flush()
    if ready_file is not None:
        temporary = ready_file.with_suffix(".tmp")
        temporary.write_text(json.dumps(facts) + "\n", encoding="utf-8")
        temporary.replace(ready_file)
    await stopped.wait()
    sidecar.close()
    if ready_file is not None:
        ready_file.unlink(missing_ok=True)


def _write_line(line: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(line)
        sys.stderr.flush()

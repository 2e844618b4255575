"""`kraft-wire server`: reads the configuration, serves, and says what a user needs to see.

Arguments are parsed by hand, because typer and rich would double the time to the first answer.
Exit codes: 0 stopped, 2 could not run.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from kraft_wire.node.config import (
    LISTEN_OPTION,
    ConfigError,
    NodeConfig,
    Setting,
    load_config,
    settings_of_file,
)
from kraft_wire.node.node import Node
from kraft_wire.node.opening import StartError
from kraft_wire.server.serve import serve

__all__ = ["USAGE", "run_server"]

USAGE = """\
Usage: kraft-wire server [server.properties] [options]

Serve one Kafka node. Without a file: one node on 127.0.0.1:9092 with data in ./kraft-wire-data.

  --override KEY=VALUE   set a key of server.properties; may be repeated
  --data DIR             log.dirs
  --listen HOST:PORT     listen there in plain text; port 0 takes a free one
  --ready-file PATH      JSON with pid, node_id, cluster_id, listeners, log_dirs, once ready
  --help                 show this text
"""

_COULD_NOT_RUN = 2


class _UsageError(Exception):
    """The command line is not one of ours."""


@dataclass(slots=True)
class _Arguments:
    """A parsed command line."""

    file: str | None = None
    overrides: list[tuple[str, Setting]] = field(default_factory=list)
    ready_file: str | None = None


def run_server(arguments: Sequence[str]) -> int:
    """Run until a signal; return the exit code."""
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(USAGE)
        return 0
    try:
        parsed = _parse(arguments)
        config = _load(parsed)
        serve(
            config,
            cluster_id=os.environ.get("CLUSTER_ID") or os.environ.get("KAFKA_CLUSTER_ID") or None,
            ready=lambda node, bound: _announce(parsed, node, bound),
        )
    except (_UsageError, ConfigError, StartError) as error:
        sys.stderr.write(f"kraft-wire server: {error}\n")
        return _COULD_NOT_RUN
    return 0


def _parse(arguments: Sequence[str]) -> _Arguments:
    parsed = _Arguments()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("--"):
            if parsed.file is not None:
                raise _UsageError(f"{name!r} is one file too many")
            parsed.file = name + equals + value
            continue
        if name not in ("--override", "--data", "--listen", "--ready-file"):
            raise _UsageError(f"{name} is no option (see --help)")
        if not equals:
            if not rest:
                raise _UsageError(f"{name} needs a value")
            value = rest.pop(0)
        _take_option(parsed, name, value)
    return parsed


def _take_option(parsed: _Arguments, name: str, value: str) -> None:
    if name == "--ready-file":
        parsed.ready_file = value
    elif name == "--data":
        parsed.overrides.append(("log.dirs", Setting(value, "--data")))
    elif name == "--listen":
        parsed.overrides.append(("listeners", Setting(f"PLAINTEXT://{value}", LISTEN_OPTION)))
    else:
        key, equals, text = value.partition("=")
        if not equals:
            raise _UsageError(f"--override {value!r} is not KEY=VALUE")
        parsed.overrides.append((key.strip(), Setting(text.strip(), "--override")))


def _load(parsed: _Arguments) -> NodeConfig:
    file = None
    if parsed.file is not None:
        try:
            with open(parsed.file, encoding="utf-8") as opened:
                file = settings_of_file(opened.read(), parsed.file)
        except OSError as error:
            raise _UsageError(f"{parsed.file}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise _UsageError(f"{parsed.file}: not a text file ({error.reason})") from error
    return load_config(file, os.environ, parsed.overrides)


def _announce(parsed: _Arguments, node: Node, config: NodeConfig) -> None:
    """Say that requests are answered, and how to try it."""
    listener = config.listeners[0]
    address = f"{listener.advertised_host}:{listener.advertised_port}"
    directories = ", ".join(config.log_dirs)
    promise = "power loss" if node.flushes_every_append else "a killed process"
    sys.stdout.write(
        f"kraft-wire: node {config.node_id} of cluster {node.cluster_id} is ready on {address}\n"
        f"kraft-wire: data in {directories}; what is acknowledged survives {promise}\n"
        f"kraft-wire: try  echo hello | kcat -b {address} -t test -P\n"
    )
    sys.stdout.flush()
    if parsed.ready_file is not None:
        temporary = f"{parsed.ready_file}.{os.getpid()}.tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(_ready_facts(node, config))
        os.replace(temporary, parsed.ready_file)


def _ready_facts(node: Node, config: NodeConfig) -> str:
    """Return what the ready file says, as one line of JSON."""
    facts = {
        "pid": os.getpid(),
        "node_id": config.node_id,
        "cluster_id": node.cluster_id,
        "listeners": {
            each.name: f"{each.advertised_host}:{each.port}" for each in config.listeners
        },
        "log_dirs": [os.path.abspath(path) for path in config.log_dirs],
    }
    return json.dumps(facts) + "\n"

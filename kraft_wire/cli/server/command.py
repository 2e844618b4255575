"""`kraft-wire server`: reads the configuration, runs the node, and prints how to use it.

Arguments are parsed by hand, because typer and rich would double the time to the first answer. Exit
codes: 0 stopped, 2 could not run.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, replace
from typing import TYPE_CHECKING

from kraft_wire.cli.known_keys import unknown_key
from kraft_wire.cli.properties_file import UnreadableFile, read_properties
from kraft_wire.cli.random_source import SystemRandomSource
from kraft_wire.cli.server.descriptors import connections_possible
from kraft_wire.cli.server.host_name import host_name
from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.frozen import slotted
from kraft_wire.model import StorageError
from kraft_wire.node.config.node_config import (
    LISTEN_OPTION,
    ConfigError,
    NodeConfig,
    Setting,
    load_config,
)
from kraft_wire.node.disks.opening import StartError
from kraft_wire.node.event_log import EventLog, Line
from kraft_wire.node.events.catalogue import LEVELS
from kraft_wire.node.node import Node
from kraft_wire.node.security.exposure import exposures
from kraft_wire.server.clock import now_ms, wall_ms
from kraft_wire.server.host import Host
from kraft_wire.server.listening import bound_sockets
from kraft_wire.server.process import ServerProcess
from kraft_wire.server.serve import Serving
from kraft_wire.storage.files import FileSystem
from kraft_wire.storage.os_files import OsFileSystem
from kraft_wire.wire.generated.messages import RELEASE

if TYPE_CHECKING:
    from kraft_wire.testing.observed_server import ObservedServer

__all__ = ["OPTIONS", "USAGE", "run_server"]

USAGE = """\
Usage: kraft-wire server [OPTIONS] [server.properties]

  Run a Kafka node. Without a file it listens on 127.0.0.1:9092 and keeps its
  data in ./kraft-wire-data.

Options:
  --override KEY=VALUE  Set a key of server.properties; may be repeated.
  --data DIR            Short for log.dirs.
  --listen HOST:PORT    Listen on this address; port 0: any free port.
  --log-format text|json
                        Format of the log on standard error (default: text).
  --log-level LEVEL     Least severe level that is logged: DEBUG, INFO, WARN,
                        ERROR or OFF (default: KAFKA_LOG4J_ROOT_LOGLEVEL, or
                        INFO).
  --ready-file PATH     Write JSON with pid, node_id, cluster_id, listeners and
                        log_dirs when ready; remove it when stopped.

Options for tests (docs/TESTING.md, docs/FAULTS.md):
  --ephemeral           Keep all data in memory.
  --faults FILE         Inject the faults of a file of rules (YAML or JSON).
  --control HOST:PORT   Serve the HTTP API for rules; port 0: any free port.
  --trace FILE          Append each request and response as a JSON line.

  --help                Show this message and exit.
"""

_COULD_NOT_RUN = 2
_FOR_TESTS = {"--faults": "faults_file", "--control": "control", "--trace": "trace_file"}
_LOG_FORMATS = ("text", "json")
_LEVEL_VARIABLE, _LOGGERS_VARIABLE = "KAFKA_LOG4J_ROOT_LOGLEVEL", "KAFKA_LOG4J_LOGGERS"
_VALUED = (
    *("--override", "--data", "--listen", "--log-format", "--log-level", "--ready-file"),
    *_FOR_TESTS,
)
OPTIONS = (*_VALUED, "--ephemeral", "--help")


class _UsageError(Exception):
    """The command line is not one of ours."""


@slotted
class _Arguments:
    """A parsed command line."""

    file: str | None = None
    overrides: list[tuple[str, Setting]] = field(default_factory=list)
    ready_file: str | None = None
    log_format: str = _LOG_FORMATS[0]
    log_level: str | None = None
    is_ephemeral: bool = False
    faults_file: str | None = None
    control: str | None = None
    trace_file: str | None = None
    control_address: str = ""
    """The control address for rules, once it is known."""

    @property
    def is_observed(self) -> bool:
        """Whether the server is one for tests."""
        return self.is_ephemeral or any((self.faults_file, self.control, self.trace_file))


@slotted
class _State:
    """The report of `/ready`."""

    is_ready: bool = False


def run_server(arguments: Sequence[str]) -> int:
    """Run until a signal; return the exit code."""
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(USAGE)
        return 0
    try:
        if not __debug__:
            raise StartError("asserts are off (-O or PYTHONOPTIMIZE): the server relies on them")
        parsed = _parse(arguments)
        _check_ready_file(parsed.ready_file)
        _serve(parsed, _load(parsed))
    except (_UsageError, UnreadableFile, ConfigError, StartError) as error:
        sys.stderr.write(f"kraft-wire server: {error}\n")
        return _COULD_NOT_RUN
    return 0


def _serve(parsed: _Arguments, config: NodeConfig) -> None:
    """Bind, open the node, listen, print the addresses, and serve until a signal."""
    process = ServerProcess()
    _set_up_log(parsed, process.log)
    with bound_sockets(config.all_listeners) as sockets:
        config = config.with_ports({each.name: sock.getsockname()[1] for each, sock in sockets})
        observed = _observed(parsed) if parsed.is_observed else None
        fs = OsFileSystem() if observed is None or not parsed.is_ephemeral else observed.disk()
        node = _open_node(config, fs, process.log)
        _take_away_ready_file(parsed.ready_file)
        serving = Serving(node, sockets, process, Host if observed is None else observed.host)
        if observed is not None and parsed.control is not None:
            _serve_control(parsed, serving, observed)
        state = _State()
        if config.metrics_port is not None:
            _serve_metrics(serving, config.all_listeners[0].host, config.metrics_port, state)
        _warn_of_exposures(process.log, config)
        if any(each.sasl and each.sasl.tokens for each in config.security.values()):
            _take_tokens(serving, node)
        if any(each.tokens is not None for each in config.links.values()):
            _show_tokens(serving, config)

        def ready() -> None:
            process.settled()
            state.is_ready = True
            process.log.event("ready", node_id=config.node_id, cluster_id=node.cluster_id)
            try:
                _announce(parsed, node, config)
            except StartError as error:
                process.break_off(str(error))

        serving.listen(ready)
        serving.run()
        _take_away_ready_file(parsed.ready_file)


def _warn_of_exposures(log: EventLog, config: NodeConfig) -> None:
    """Warn of listeners that others reach, and that protect too little."""
    for each in exposures(config):
        log.event(each.event, listener=each.listener, host=each.host)


def _take_tokens(serving: Serving, node: Node) -> None:
    """Bring the keys of signed tokens, and warn of weak settings. Errors: StartError."""
    from kraft_wire.cli.server.key_sets import KeySets  # most nodes take no tokens

    report = serving.host.log.event
    for name, each in node.config.security.items():
        tokens = None if each.sasl is None else each.sasl.tokens
        if tokens is not None and tokens.weakness is not None:
            report("token_checks_are_weak", listener=name, reason=Line(tokens.weakness))
    assert node.logins is not None, "a listener takes tokens"
    KeySets(node.logins.key_sets, serving.loop, report)


def _show_tokens(serving: Serving, config: NodeConfig) -> None:
    """Get the tokens by which this node logs in to others. Errors: StartError."""
    from kraft_wire.cli.server.link_tokens import link_tokens  # most nodes show none

    host = serving.host
    host.links.tokens = link_tokens(config.links, serving.loop, host.log.event)


def _set_up_log(parsed: _Arguments, log: EventLog) -> None:
    """Choose form and level: `--log-level` or Kafka's variables, whose mistakes are logged."""
    if parsed.log_format == "json":
        from kraft_wire.cli.server.json_log import json_line

        log.form = json_line
    if parsed.log_level is not None:
        log.set_level(parsed.log_level)
        return
    wanted = os.environ.get(_LEVEL_VARIABLE, "").strip().upper()
    if wanted in LEVELS:
        log.set_level(wanted)
    elif wanted:
        log.event("unknown_log_level", variable=_LEVEL_VARIABLE, value=wanted, used="INFO")
    loggers = os.environ.get(_LOGGERS_VARIABLE, "").strip()
    if loggers:
        _set_up_loggers(loggers, log)


def _set_up_loggers(text: str, log: EventLog) -> None:
    """Give components the levels of the loggers that Kafka's images take."""
    from kraft_wire.node.events.loggers import logger_levels

    found = logger_levels(text)
    for component, level in found.levels.items():
        log.set_level(level, component)
    for entry in found.wrong:
        log.event("unknown_log_level", variable=_LOGGERS_VARIABLE, value=entry, used="none")
    if found.unused:
        loggers = ",".join(found.unused)
        log.event("unknown_loggers", variable=_LOGGERS_VARIABLE, loggers=loggers, action="ignored")


def _observed(parsed: _Arguments) -> "ObservedServer":
    from kraft_wire.testing.observed_server import ObservedServer

    return ObservedServer(parsed.faults_file, parsed.trace_file)


def _serve_control(parsed: _Arguments, serving: Serving, observed: "ObservedServer") -> None:
    from kraft_wire.testing.observed_server import open_control

    assert parsed.control is not None, "asked for"
    coroutine = open_control(observed.rules, parsed.control)
    parsed.control_address = serving.loop.run_until_complete(coroutine)
    serving.host.log.event("control", address=f"http://{parsed.control_address}/rules")


def _parse(arguments: Sequence[str]) -> _Arguments:
    parsed = _Arguments()
    rest = list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if not name.startswith("--"):
            if parsed.file is not None:
                raise _UsageError(f"{name!r} is a second file")
            parsed.file = name + equals + value
            continue
        if name == "--ephemeral" and not equals:
            parsed.is_ephemeral = True
            continue
        if name not in _VALUED:
            raise _UsageError(f"{unknown_name('option', name, OPTIONS)} (see --help)")
        if not equals:
            if not rest:
                raise _UsageError(f"{name} requires a value")
            value = rest.pop(0)
        _take_option(parsed, name, value)
    if parsed.is_ephemeral and parsed.file is not None:
        raise _UsageError("use --ephemeral with --override, not with a file")
    return parsed


def _take_option(parsed: _Arguments, name: str, value: str) -> None:
    if name == "--ready-file":
        parsed.ready_file = value
    elif name in ("--log-format", "--log-level"):
        _take_log_option(parsed, name, value)
    elif name in _FOR_TESTS:
        setattr(parsed, _FOR_TESTS[name], value)
    elif name == "--data":
        parsed.overrides.append(("log.dirs", Setting(value, "--data")))
    elif name == "--listen":
        parsed.overrides.append(("listeners", Setting(f"PLAINTEXT://{value}", LISTEN_OPTION)))
    else:
        key, equals, text = value.partition("=")
        if not equals:
            raise _UsageError(f"--override {value!r} is not KEY=VALUE")
        problem = unknown_key(key.strip())
        if problem is not None:
            raise _UsageError(f"--override {value}: {problem}")
        parsed.overrides.append((key.strip(), Setting(text.strip(), "--override")))


def _take_log_option(parsed: _Arguments, name: str, value: str) -> None:
    if name == "--log-format":
        if value not in _LOG_FORMATS:
            raise _UsageError(f"--log-format: {unknown_name('format', value, _LOG_FORMATS)}")
        parsed.log_format = value
        return
    if value.upper() not in LEVELS:
        raise _UsageError(f"--log-level: {unknown_name('level', value.upper(), [*LEVELS])}")
    parsed.log_level = value.upper()


def _load(parsed: _Arguments) -> NodeConfig:
    file = None if parsed.file is None else read_properties(parsed.file)
    name = parsed.file or "configuration"
    if parsed.is_ephemeral:
        from kraft_wire.testing.observed_server import EPHEMERAL_SETTINGS

        settings = EPHEMERAL_SETTINGS.items()
        own = [(key, Setting(value, "--ephemeral")) for key, value in settings]
        parsed.overrides[:0] = own
    config = load_config(file, os.environ, parsed.overrides, file_name=name, host_name=host_name)
    return replace(config, connections_possible=connections_possible())


def _open_node(config: NodeConfig, fs: FileSystem, log: EventLog) -> Node:
    """Put the node on a disk, the system's clock and chance."""
    start = _StartLine(config, log)
    for key in config.unknown_keys:
        start.report("unknown_config_key", key=key, action="ignored")
    cluster_id = os.environ.get("CLUSTER_ID") or os.environ.get("KAFKA_CLUSTER_ID") or None
    try:
        node = Node(
            config,
            fs,
            SystemRandomSource(),
            now_ms=now_ms(),
            wall_ms=wall_ms(),
            cluster_id=cluster_id,
            report=start.report,
        )
    except StorageError as error:
        raise StartError(f"the data cannot be opened: {error}") from error
    start.write()
    return node


class _StartLine:
    """The first line of a log: written before any other event, and not where a start is refused.

    A refused start has nothing to report but its reason, which is one line.
    """

    def __init__(self, config: NodeConfig, log: EventLog) -> None:
        self._config = config
        self._log = log
        self._is_written = False

    def report(self, name: str, **fields: object) -> None:
        """Write an event behind the first line."""
        self.write()
        self._log.event(name, **fields)

    def write(self) -> None:
        """Write the first line, once."""
        if not self._is_written:
            self._is_written = True
            _log_start(self._config, self._log)


def _log_start(config: NodeConfig, log: EventLog) -> None:
    """Write the first line: the node, its directory, and the reserved disk space."""
    roles = [
        name
        for name, has in (("broker", config.is_broker), ("controller", config.is_controller))
        if has
    ]
    reserve_bytes = config.settings.integer("storage.ballast.bytes")
    log.event(
        "starting",
        release=RELEASE,
        pid=os.getpid(),
        node_id=config.node_id,
        roles=",".join(roles),
        log_dirs=",".join(config.log_dirs),
        reserve_bytes=reserve_bytes,
        reserve=Line(
            "kept in each log directory, so that a full disk refuses records before it fails "
            "(storage.ballast.bytes)"
        ),
    )


def _serve_metrics(serving: Serving, address: str, port: int, state: _State) -> None:
    from kraft_wire.cli.server.metrics_endpoint import serve_metrics

    try:

        def is_ready() -> bool:
            return state.is_ready and not serving.host.is_stopping

        coroutine = serve_metrics(serving.host, address, port, is_ready)
        server = serving.loop.run_until_complete(coroutine)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise StartError(f"cannot serve metrics on {address}:{port}: {reason}") from error
    bound = server.sockets[0].getsockname()[1]
    serving.host.log.event("metrics", address=f"http://{address}:{bound}/metrics")


def _announce(parsed: _Arguments, node: Node, config: NodeConfig) -> None:
    """Print that the node is ready, and a command to try."""
    listeners = config.all_listeners
    address = f"{listeners[0].advertised_host}:{listeners[0].advertised_port}"
    others = "".join(
        f", {each.name} on {each.advertised_host}:{each.advertised_port}" for each in listeners[1:]
    )
    directories = "memory" if parsed.is_ephemeral else ", ".join(config.all_dirs)
    promise = "power loss" if node.flushes_every_append else "a killed process"
    if parsed.is_ephemeral:
        promise = "nothing"
    attempt = f"echo hello | kraft-wire produce test --bootstrap-server {address}"
    if not config.is_broker:
        promise = "power loss, as metadata always does"
        attempt = f"kraft-wire quorum describe --bootstrap-controller {address}"
    with suppress(OSError):  # standard output is closed: the server continues
        sys.stdout.write(
            f"kraft-wire: node {config.node_id} of cluster {node.cluster_id} "
            f"is ready on {address}{others}\n"
            f"kraft-wire: data in {directories}; what is acknowledged survives {promise}\n"
            f"kraft-wire: try  {attempt}\n"
        )
        sys.stdout.flush()
    if parsed.ready_file is not None:
        _write_ready_file(parsed.ready_file, _ready_facts(parsed, node, config))


def _check_ready_file(path: str | None) -> None:
    """Refuse a place where the file cannot be made, before anything is touched."""
    if path is None:
        return
    directory = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise _UsageError(f"--ready-file {path}: Is a directory")
    if not os.path.isdir(directory):
        raise _UsageError(f"--ready-file {path}: No such directory")
    if not os.access(directory, os.W_OK):
        raise _UsageError(f"--ready-file {path}: the directory cannot be written to")


def _take_away_ready_file(path: str | None) -> None:
    """Remove the ready file that a killed node left."""
    if path is not None:
        with suppress(OSError):
            os.unlink(path)


def _write_ready_file(path: str, facts: str) -> None:
    """Make the file appear whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(facts)
        os.replace(temporary, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(temporary)
        raise StartError(f"--ready-file {path}: {error.strerror}") from error


def _ready_facts(parsed: _Arguments, node: Node, config: NodeConfig) -> str:
    """Return the content of the ready file: one line of JSON."""
    facts = {
        "pid": os.getpid(),
        "node_id": config.node_id,
        "cluster_id": node.cluster_id,
        "listeners": {
            each.name: f"{each.advertised_host}:{each.port}" for each in config.all_listeners
        },
        "log_dirs": [os.path.abspath(path) for path in config.log_dirs],
    }
    if parsed.is_ephemeral:
        facts["log_dirs"] = []
    if parsed.control_address:
        facts["control"] = parsed.control_address
    return json.dumps(facts) + "\n"

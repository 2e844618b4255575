"""Every option of `kraft-wire server` reaches what it is about, in both forms; mistakes are named.

The command runs in this process up to the point where it would open its sockets.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraft_wire.cli.server import command
from kraft_wire.node.config.node_config import NodeConfig

Started = tuple[Any, NodeConfig]


class Launch:
    """Runs the command, and keeps what it would serve."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.served: list[Started] = []
        self._capsys = capsys
        monkeypatch.setattr(command, "_serve", lambda *started: self.served.append(started))

    def __call__(self, *arguments: str) -> Started:
        self.served.clear()
        assert command.run_server(arguments) == 0, self._capsys.readouterr().err
        (started,) = self.served
        return started

    def refused(self, *arguments: str) -> str:
        """Return the line with which the command ends."""
        self.served.clear()
        assert (command.run_server(arguments), self.served) == (2, [])
        output = self._capsys.readouterr()
        assert output.out == ""
        (line,) = output.err.splitlines()
        return line.removeprefix("kraft-wire server: ")


@pytest.fixture
def launch(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Launch:
    return Launch(monkeypatch, capsys)


def _listener(started: Started) -> tuple[str, int]:
    (client,) = started[1].listeners
    return client.host, client.port


SEEN: dict[str, tuple[str, object, Callable[[Started], object]]] = {
    "--data": ("/d/x", ("/d/x",), lambda started: tuple(started[1].log_dirs)),
    "--listen": ("127.0.0.2:19092", ("127.0.0.2", 19092), _listener),
    "--override": ("node.id = 7", 7, lambda started: started[1].node_id),
    "--log-format": ("json", "json", lambda started: started[0].log_format),
    "--log-level": ("warn", "WARN", lambda started: started[0].log_level),
    "--ready-file": ("ready.json", "ready.json", lambda started: started[0].ready_file),
    "--faults": ("rules.yaml", "rules.yaml", lambda started: started[0].faults_file),
    "--control": ("127.0.0.1:0", "127.0.0.1:0", lambda started: started[0].control),
    "--trace": ("trace.jsonl", "trace.jsonl", lambda started: started[0].trace_file),
}
"""Each option with a value, what must be seen of it, and where."""


def test_the_table_has_every_option_of_the_help() -> None:
    options = set(re.findall(r"^  (--[a-z-]+)", command.USAGE, re.MULTILINE))
    assert {*SEEN, "--ephemeral", "--help"} == options == set(command.OPTIONS)


@pytest.mark.parametrize("option", SEEN)
def test_an_option_reaches_what_it_is_about_and_nothing_else(launch: Launch, option: str) -> None:
    value, wanted, seen_of = SEEN[option]
    plain = launch()
    for arguments in ((option, value), (f"{option}={value}",)):
        started = launch(*arguments)
        assert seen_of(started) == wanted != seen_of(plain)
        others = {name: look(started) for name, (_, _, look) in SEEN.items() if name != option}
        assert others == {name: SEEN[name][2](plain) for name in others}
    assert launch.refused(option) == f"{option} requires a value"


@pytest.mark.parametrize("option", SEEN)
def test_a_server_with_an_option_for_tests_is_one_for_tests(launch: Launch, option: str) -> None:
    """It holds its requests for rules and traces, which costs time."""
    is_observed = launch(option, SEEN[option][0])[0].is_observed
    assert is_observed == (option in ("--faults", "--control", "--trace"))
    assert launch("--ephemeral")[0].is_observed


def test_data_in_memory_come_before_overrides(launch: Launch) -> None:
    assert tuple(launch("--ephemeral")[1].log_dirs) == ("memory",)
    started = launch("--override", "log.dirs=/d", "--ephemeral")
    assert (tuple(started[1].log_dirs), started[0].is_ephemeral) == (("/d",), True)


def test_options_come_before_the_file(launch: Launch, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    keys = ("process.roles=broker,controller", "controller.listener.names=C", "node.id=3")
    more = ("listeners=A://:1,C://:2", "listener.security.protocol.map=A:PLAINTEXT,C:PLAINTEXT")
    voters = "controller.quorum.voters=4@localhost:2"
    file.write_text("\n".join((*keys, *more, voters, "log.dirs=/f")))
    config = launch(str(file), "--override", "node.id=4")[1]
    assert (config.node_id, tuple(config.log_dirs)) == (4, ("/f",))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--ephemeral", "{file}"), "use --ephemeral with --override, not with a file"),
        (("{file}", "other"), "'other' is a second file"),
        (("--log-level", "loud"), "--log-level: unknown level"),
        (("--log-format", "JSON"), "--log-format: unknown format"),
        (("--lisen", "a:1"), "unknown option"),
        (("--ephemeral=yes",), "unknown option"),
        (("--override", "node.id"), "--override 'node.id' is not KEY=VALUE"),
        (("--override", "log.dirz=x"), "--override log.dirz=x: "),
        (("--listen", "nowhere"), "--listen"),
    ],
)
def test_mistakes_are_named(
    launch: Launch, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("node.id=3\n")
    named = [each.format(file=file) for each in arguments]
    assert launch.refused(*named).startswith(reason)

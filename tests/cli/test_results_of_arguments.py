"""What verbs make of their arguments: each with its result, or the line of its refusal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer

from kraft_wire.cli.cluster.files import ClusterFiles
from kraft_wire.cli.cluster.setup import ClusterPlan, make_cluster
from kraft_wire.cli.completion import app as completion
from kraft_wire.cli.completion import candidates
from kraft_wire.cli.consume import command as consuming
from kraft_wire.cli.consume.command import app as consume
from kraft_wire.cli.properties_file import read_properties
from kraft_wire.cli.quorum.facts import QuorumFacts, ReplicaFacts
from kraft_wire.cli.quorum.input import BadInput, removed_voter
from kraft_wire.cli.sim.seeds import CannotRun, check_focus, seed_range
from kraft_wire.cli.spark.options import print_rows, settings_of
from kraft_wire.model import TopicPartition, uuid_from_text
from tests.cli.played_cluster import PlayedCluster

FIRST, SECOND = "AAECAwQFBgcICQoLDA0ODw", "EBESExQVFhcYGRobHB0eHw"
T = [("t", number) for number in range(3)]


def admin(*voters: tuple[int, str | None]) -> Any:
    """An admin of a quorum whose voters have directories."""
    replicas = tuple(ReplicaFacts(number, each, 0, 0, 0, ()) for number, each in voters)

    class Admin:
        def describe(self) -> QuorumFacts:
            return QuorumFacts("c", 1, 1, 0, replicas, (ReplicaFacts(9, FIRST, 0, 0, 0, ()),))

    return Admin()


def test_removed_voter_is_the_only_one_of_its_id() -> None:
    quorum = admin((1, FIRST), (2, SECOND), (2, FIRST), (3, None), (4, None), (4, SECOND))
    assert removed_voter(quorum, 1, None) == uuid_from_text(FIRST)
    assert removed_voter(quorum, 1, SECOND) == uuid_from_text(SECOND)
    assert removed_voter(quorum, 4, None) == uuid_from_text(SECOND)
    for node_id, text in (
        (9, "controller 9 is not a voter"),
        (3, "voter 3 has no directory id: the voters of this quorum are static"),
        (2, f"voter 2 has several directories: give one of {SECOND}, {FIRST}"),
    ):
        with pytest.raises(BadInput, match=f"^{text}$"):
            removed_voter(quorum, node_id, None)


@pytest.mark.parametrize(
    ("focus", "brokers", "text"),
    [
        (None, None, None),
        (None, 2, None),
        ("membership", None, None),
        ("odd-answers", None, None),
        ("odd-answers", 2, None),
        ("membership", 0, "--focus membership excludes --brokers"),
        *((each, 1, None) for each in ("transactions", "groups", "eligible-replicas")),
        *(
            (each, None, f"--focus {each} needs --brokers")
            for each in ("transactions", "groups", "eligible-replicas", "directories", "tools")
        ),
        (
            "moon",
            1,
            "--focus moon: expected one of membership, transactions, groups, eligible-replicas, "
            "directories, tools, odd-answers",
        ),
    ],
)
def test_focus_goes_with_brokers_or_without(
    focus: str | None, brokers: int | None, text: str | None
) -> None:
    if text is None:
        check_focus(focus, brokers)
        return
    with pytest.raises(CannotRun) as refused:
        check_focus(focus, brokers)
    assert str(refused.value) == text


def test_range_of_seeds_is_half_open() -> None:
    assert seed_range("0:1") == range(1)
    assert seed_range("5:10000005") == range(5, 10_000_005)
    assert seed_range(f"0:{10_000_000}") == range(10_000_000)
    for text in ("1", "1:1", "2:1", ":1", "1:", "-1:2", "a:b", "0:9223372036854775808"):
        with pytest.raises(
            CannotRun, match=f"^--seeds {text}: expected two numbers A:B with A < B$"
        ):
            seed_range(text)
    with pytest.raises(
        CannotRun, match=r"^--seeds 0:10000001: a campaign has at most 10,000,000 s"
    ):
        seed_range("0:10000001")


def test_settings_of_spark_are_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    assert settings_of(None) == settings_of([]) == {}
    assert settings_of([" a = b=c ", "d=", "a.b=1"]) == {"a": "b=c", "d": "", "a.b": "1"}
    for text in ("a", "=b", " =b", ""):
        with pytest.raises(typer.Exit) as ended:
            settings_of(["x=1", text], "--option")
        assert ended.value.exit_code == 2
        line = f"kraft-wire spark: --option {text!r} is not KEY=VALUE\n"
        assert capsys.readouterr().err == line


def test_rows_of_spark_have_numbers_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("name", "count", "from"), [("[b]a", 1_234_567, "-"), ("b", 8, 9_000)])
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "name      count  from",
        "[b]a  1,234,567  -",
        "b             8  9,000",
    ]
    print_rows(("name", "count"), [])
    assert capsys.readouterr().out.split() == ["name", "count"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ("t --from-beginning --offset 3", 2, "give one of --from-beginning and --offset"),
        ("t --follow --exit", 2, "give one of --exit and --follow"),
        ("t -g g -p 0", 2, "--partition is not for --group: the group assigns partitions"),
        ("t --json --format %s", 2, "give one of --json, --format and --property"),
        ("t --json --property print.key=true", 2, "give one of --json, --format and --property"),
        ("t --format %s --property print.key=true", 2, "give one of --json, --format and --prop"),
        ("", 2, "give a topic"),
        ("--include [", 2, "--include [: unterminated character set at position 0"),
        (
            "--include a{99999999999}",
            2,
            "--include a{99999999999}: the repetition number is too large",
        ),
        ("--include x", 1, "no topic matches x"),
        ("t --offset soon", 2, '"soon" is not an offset: earliest, latest, a number, -N before'),
        ("t -p 0 -p 3", 1, "topic t has no partition 3: it has 3"),
    ],
)
def test_consume_refuses_choices_that_exclude_each_other(
    words: str, code: int, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consuming.signal, "signal", lambda *_: None)  # type: ignore[attr-defined]  # a module that it imports
    ended, out, err = PlayedCluster(monkeypatch).run(consume, words)
    assert (ended, out) == (code, "")
    assert err.startswith(f"kraft-wire consume: {text}")


@pytest.mark.parametrize(
    ("words", "keys", "expected"),
    [
        ("t", T, {}),
        ("t --offset 7 -p 2", [("t", 2)], {"offset": 7}),
        ("t -p 1 -p 0 -n 5", [("t", 1), ("t", 0)], {"count_max": 5}),
        ("-t t -t t --follow", T, {"follows": True}),
        ("t --timeout-ms 9", None, {"follows": True, "silence_ms": 9}),
        ("--include t.* t", None, {}),
        ("--include u+ t --offset -4", [*T, ("uu", 0)], {"before_end": 4}),
        ("t --isolation read_committed --exit", None, {"read_committed": True}),
    ],
)  # fmt: skip
def test_consume_reads_what_is_chosen(
    words: str,
    keys: list[tuple[str, int]] | None,
    expected: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[tuple[Sequence[TopicPartition], Any]] = []
    monkeypatch.setattr(
        consuming, "read_partitions", lambda _, found, reading, write: read.append((found, reading))
    )
    monkeypatch.setattr(consuming.signal, "signal", lambda *_: None)  # type: ignore[attr-defined]  # a module that it imports
    played = PlayedCluster(monkeypatch)
    played.counts = {"t": 3, "uu": 1, "xu": 1}
    assert played.run(consume, words) == (0, "", "")
    ((found, reading),) = read
    assert found == [TopicPartition(*each) for each in keys or T]
    start = reading.start
    shown = {
        "offset": start.offset,
        "before_end": start.before_end,
        "follows": reading.follows,
        "count_max": reading.count_max,
        "silence_ms": reading.silence_ms,
        "read_committed": reading.read_committed,
    }
    defaults = {"offset": None, "before_end": None, "follows": False, "count_max": None}
    assert shown == {**defaults, "silence_ms": None, "read_committed": False, **expected}
    assert (start.timestamp is None) == ("--offset" in words)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], ["--help", "--version"]),
        (["--"], ["--help", "--version"]),
        (["quorum", "--"], ["--help"]),
        (["users", "delete", "--m"], ["--mechanism"]),
        (["topics", "list", "-b", ""], []),
        (["produce", "-z", "g"], ["gzip"]),
        (["consume", "--json", "--fo"], ["--follow", "--format", "--formatter-property"]),
        (["groups", "--h"], ["--help"]),
        (["server", "x"], []),
    ],
)
def test_words_are_completed_in_order(words: list[str], found: list[str]) -> None:
    offered = candidates(words)
    assert [each for each in offered if words or each.startswith("-")] == found
    assert offered == sorted(offered)


def test_script_is_that_of_one_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    played = PlayedCluster(monkeypatch)
    starts = {"bash": "_kraft_wire() {\n", "zsh": "#compdef kraft-wire\n", "fish": "function __kr"}
    for shell, start in starts.items():
        code, text, said = played.run(completion, [shell])
        assert (code, text.startswith(start), said) == (0, True, "")
        assert "kraft-wire completion --words -- " in text
    text = "kraft-wire completion: give one shell: bash, zsh, fish\n"
    assert played.run(completion, []) == played.run(completion, ["bash", "zsh"]) == (2, "", text)
    text = 'kraft-wire completion: unknown shell "bsh"; did you mean "bash"?\n'
    assert played.run(completion, ["bsh"]) == (2, "", text)
    assert played.run(completion, ["--words", "--", "gro"]) == (0, "groups\n", "")


def test_files_of_clients_have_the_login_of_their_user(tmp_path: Path) -> None:
    files = ClusterFiles(tmp_path)
    make_cluster(files, ClusterPlan(controllers=1, brokers=1, is_secured=True))
    shared = {
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.secrets.authority),
    }
    passwords = set()
    for path, mechanism, module, user in (
        (files.secrets.admin_config, "PLAIN", "plain.Plain", "admin"),
        (files.secrets.client_config, "SCRAM-SHA-256", "scram.Scram", "client"),
    ):
        entries = {key: each.value for key, each in read_properties(str(path)).items()}
        login = entries.pop("sasl.jaas.config")
        assert entries == {**shared, "sasl.mechanism": mechanism}
        class_name = f"org.apache.kafka.common.security.{module}LoginModule"
        start = f'{class_name} required username="{user}" password="'
        assert login.startswith(start)
        assert login.endswith('";')
        passwords.add(login.removeprefix(start))
        assert path.stat().st_mode & 0o777 == 0o600
    assert len(passwords) == 2

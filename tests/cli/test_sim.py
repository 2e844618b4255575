"""`kraft-wire sim`: what it prints, writes and returns."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraft_wire.cli.sim.command import app
from kraft_wire.sim.runs.run import Result

RUNNER = CliRunner()


def test_seed_whose_invariants_hold_ends_with_0_and_prints_figures() -> None:
    result = RUNNER.invoke(app, ["--seed", "14", "--events", "300", "--json"])
    assert result.exit_code == 0, result.output
    figures = json.loads(result.output)
    assert figures["seeds"] == 1
    assert figures["events"] >= 300
    assert figures["violations"] == []
    assert figures["invariants"]["S01 SingleLeaderPerEpoch"] > 0


def test_range_of_seeds_adds_up() -> None:
    result = RUNNER.invoke(app, ["--seeds", "0:3", "--events", "200", "--jobs", "1"])
    assert result.exit_code == 0, result.output
    assert "0 violations" in result.output
    assert "S05 CommittedOnMajority" in result.output


def test_focus_draws_other_seeds_and_is_part_of_a_record(tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    campaign = ["--seeds", "0:2", "--events", "200", "--jobs", "1", "--record", str(record)]
    result = RUNNER.invoke(app, [*campaign, "--focus", "membership", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["coverage"]["settled"] == 2
    assert RUNNER.invoke(app, campaign).exit_code == 2, "a record of other seeds"


def test_brokers_make_it_a_cluster_with_partitions(tmp_path: Path) -> None:
    trace = tmp_path / "t.jsonl"
    arguments = ["--seed", "2", "--brokers", "2", "--events", "500", "--trace", str(trace)]
    result = RUNNER.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["invariants"]["S23 IsrSound"] > 0
    entries = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    nodes = {entry["node"] for entry in entries if entry["kind"] == "state"}
    assert nodes & {11, 12, 13} == {11, 12}


def test_violation_is_shown_shrunk_and_can_be_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = RUNNER.invoke(app, ["--seed", "1", "--events", "300", "--canary"])
    assert result.exit_code == 1, result.output
    assert "S00 Canary" in result.output
    (plan,) = tmp_path.glob("*.json")
    assert f"--script {plan.name} --canary" in result.output
    assert "kraft-wire sim --seed 1 --events 300 --canary" in result.output
    again = RUNNER.invoke(app, ["--script", plan.name, "--canary", "--json"])
    assert again.exit_code == 1
    assert json.loads(again.output)["violations"][0]["invariant"] == "S00 Canary"
    assert RUNNER.invoke(app, ["--script", plan.name]).exit_code == 0


def test_trace_and_page_are_written(tmp_path: Path) -> None:
    trace, page = tmp_path / "t.jsonl", tmp_path / "t.html"
    arguments = ["--seed", "14", "--events", "200", "--trace", str(trace), "--html", str(page)]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    entries = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert {"message", "state"} <= {entry["kind"] for entry in entries}
    assert "<canvas" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--seeds", "5"],
        ["--seeds", "0:2", "--seed", "1"],
        ["--script", "/nowhere.json"],
        ["--focus", "moon"],
        ["--focus", "membership", "--brokers", "2"],
    ],
)
def test_what_cannot_be_run_ends_with_2(arguments: list[str]) -> None:
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 2
    assert "kraft-wire sim: " in result.output


def test_story_gets_a_trace_too(tmp_path: Path) -> None:
    story, trace = tmp_path / "story.txt", tmp_path / "t.jsonl"
    story.write_text("# One voter.\n> cluster voters=1\n> write 1 r0 1500\n", encoding="utf-8")
    arguments = ["--script", str(story), "--trace", str(trace)]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    entries = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    assert "state" in {entry["kind"] for entry in entries}


def test_story_gets_a_page_too(tmp_path: Path) -> None:
    story, page = tmp_path / "story.txt", tmp_path / "story.html"
    story.write_text("# One voter.\n> cluster voters=1\n> write 1 r0 1500\n", encoding="utf-8")
    result = RUNNER.invoke(app, ["--script", str(story), "--html", str(page)])
    assert result.exit_code == 0, result.output
    assert "client gets NONE" in result.output
    assert "> write 1 r0 1500" in page.read_text(encoding="utf-8").replace("\\u003e", ">")


def test_campaign_goes_on_from_its_record_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    record = tmp_path / "campaign.jsonl"
    common = ["--events", "150", "--jobs", "1", "--json"]
    whole = RUNNER.invoke(app, ["--seeds", "0:4", *common])
    assert RUNNER.invoke(app, ["--seeds", "0:2", *common, "--record", str(record)]).exit_code == 0
    with record.open("a", encoding="utf-8") as file:
        file.write('{"seed": 2, "cut off by a de')
    again = RUNNER.invoke(app, ["--seeds", "0:4", *common, "--record", str(record)])
    found, expected = json.loads(again.stdout), json.loads(whole.stdout)
    for figures in (found, expected):
        figures.pop("events_per_core_second")
    assert found == expected
    assert len(record.read_text(encoding="utf-8").splitlines()) == 1 + 4
    other = RUNNER.invoke(app, ["--seeds", "0:4", "--events", "151", "--record", str(record)])
    assert other.exit_code == 2
    assert "holds another campaign" in other.output


def test_file_that_is_missing_is_named_with_the_reason_alone(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["--script", f"{tmp_path}/none.json"])
    assert result.exit_code == 2
    assert result.output == f"kraft-wire sim: {tmp_path}/none.json: No such file or directory\n"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("plan.json", b"\xff", "not a text file (invalid start byte)"),
        ("plan.json", b"{}", "no plan: it has no seed"),
        ("plan.json", b"[" * 100_000, "not a plan: it is nested too deeply"),
        ("story.txt", b"", "the first command is `cluster`"),
        ("story.txt", b"> nothing 1\n", "unknown command: nothing"),
        ("story.txt", b"> cluster brokers=5\n", "'cluster brokers=5': there is no 'brokers'"),
        (
            "story.txt",
            b"> cluster\n> stop 1 2 3\n",
            "'stop 1 2 3': what it takes is stop node",
        ),
    ],
)
def test_script_that_is_none_is_one_line_with_its_name(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    (tmp_path / name).write_bytes(content)
    result = RUNNER.invoke(app, ["--script", str(tmp_path / name)])
    assert (result.exit_code, result.output) == (
        2,
        f"kraft-wire sim: {tmp_path}/{name}: {reason}\n",
    )


@pytest.mark.parametrize("seeds", ["0:10000001", "0:99999999999999999999999", f"0:{'9' * 5000}"])
def test_more_seeds_than_memory_holds_are_refused(seeds: str) -> None:
    result = RUNNER.invoke(app, ["--seeds", seeds])
    assert (result.exit_code, result.output.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    "content",
    [b"\x00\xff\xfe binary \n more", b"no line end", b"{}\n"],
    ids=["binary", "incomplete line", "other JSON"],
)
def test_file_that_is_no_record_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    record = tmp_path / "campaign.jsonl"
    record.write_bytes(content)
    result = RUNNER.invoke(app, ["--seeds", "0:1", "--events", "150", "--record", str(record)])
    assert result.exit_code == 2, result.output
    assert result.output.startswith(f"kraft-wire sim: {record} holds another campaign: ")
    assert record.read_bytes() == content


def test_line_of_a_record_that_is_no_result_is_named(tmp_path: Path) -> None:
    record = tmp_path / "campaign.jsonl"
    arguments = ["--seeds", "0:1", "--events", "150", "--jobs", "1", "--record", str(record)]
    assert RUNNER.invoke(app, arguments).exit_code == 0
    content = record.read_bytes()
    for line in (b'{"seed": 1}\n', b"[" * 9_999 + b"\n"):
        record.write_bytes(content + line)
        result = RUNNER.invoke(app, arguments)
        assert result.exit_code == 2
        assert result.output == f"kraft-wire sim: {record}, line 3: not the result of a seed\n"


def test_stopped_campaign_prints_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(seeds: list[int], **options: object) -> Iterator[tuple[Result, float]]:
        yield Result(seeds[0], events=17), 0.5
        raise KeyboardInterrupt

    monkeypatch.setattr("kraft_wire.cli.sim.command.results_of", stopped)
    result = RUNNER.invoke(app, ["--seeds", "3:9", "--jobs", "1", "--json"])
    assert result.exit_code == 2
    assert json.loads(result.stdout)["events"] == 17
    assert "stopped after 1 of 6 seeds" in result.stderr

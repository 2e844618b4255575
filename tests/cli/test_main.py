"""The command's ends: what a verb cannot write, and nobody's streams."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from kraft_wire.cli import main
from kraft_wire.cli.main import COMMANDS

PROGRAM = str(Path(sys.executable).parent / "kraft-wire")
VERBS = ["--help", "random-uuid", "wire schema FetchRequest", "sim --seed 1 --events 20"]


@pytest.mark.parametrize("verb", VERBS)
def test_output_on_a_full_disk_is_one_line_and_a_failure(verb: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [PROGRAM, *verb.split()], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "No space left on device" in line


@pytest.mark.parametrize("verb", VERBS)
def test_a_reader_that_goes_away_ends_a_verb_silently(verb: str) -> None:
    process = subprocess.Popen(
        [PROGRAM, *verb.split()], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (1, "")


@pytest.mark.parametrize("verb", [[], *([verb] for verb in COMMANDS)], ids=" ".join)
def test_help_has_one_form_for_every_command(verb: list[str]) -> None:
    """Plain text that a narrow terminal and a pipe show alike: no boxes, no colours."""
    done = subprocess.run([PROGRAM, *verb, "--help"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    usage, empty, *rest = done.stdout.splitlines()
    assert usage.startswith(" ".join(["Usage: kraft-wire", *verb, "[OPTIONS]"]))
    assert empty == ""
    assert "Options:" in rest
    assert not {"│", "╭", "\x1b"} & {*done.stdout}
    assert max(map(len, done.stdout.splitlines())) <= 80
    commands = done.stdout.partition("\nCommands:\n")[2].splitlines()
    assert [line for line in commands if line.endswith("...")] == [], "no description is cut"


def test_help_follows_the_terminal_and_shows_no_types_of_python() -> None:
    verb = [PROGRAM, "topics", "create", "--help"]
    shown = {}
    for columns in (60, 80, 120, 200):
        environment = {**os.environ, "COLUMNS": str(columns)}
        done = subprocess.run(verb, capture_output=True, text=True, timeout=60, env=environment)
        shown[columns] = max(map(len, done.stdout.splitlines()))
        assert shown[columns] <= min(columns, 120)
        assert not re.search(r"<[a-z]*\[?(?:str|int|float|Path)", done.stdout)
    assert shown[60] < shown[80] < shown[120] == shown[200]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["dump"], "kraft-wire dump: Missing argument 'FILE' (see --help)"),
        (["wire", "decode", "x"], "kraft-wire wire decode: Got unexpected extra argument(s) (x)"),
        (["tpics"], 'kraft-wire: unknown command "tpics"; did you mean "topics"? (see --help)'),
        (["nope"], 'kraft-wire: unknown command "nope" (see --help)'),
        (["topics", "lst"], 'kraft-wire topics: unknown command "lst"; did you mean "list"?'),
        (["topics", "list", "--jsn"], 'kraft-wire topics list: unknown option "--jsn"; did you'),
        (["server", "--lisen"], 'kraft-wire server: unknown option "--lisen"; did you mean "--l'),
        (
            ["server", "--override", "num.partition=3"],
            'kraft-wire server: --override num.partition=3: unknown key "num.partition"; did you'
            ' mean "num.partitions"?',
        ),
        (["cluster", "up", "--override", "a=1"], "kraft-wire cluster: --override a=1: unknown key"),
        (["sim", "--nodes", "x\ny"], "kraft-wire sim: Invalid value for '--nodes'"),
        (["quorum", "--nope"], 'kraft-wire quorum: unknown option "--nope" (see --help)'),
    ],
)
def test_wrong_arguments_are_one_line_and_leave_nothing(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert (done.returncode, done.stdout) == (2, "")
    (said,) = done.stderr.splitlines()
    assert said.startswith(line)
    assert list(tmp_path.iterdir()) == []


def test_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kraft_wire", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout[:11], done.stderr) == (0, "kraft-wire ", "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["gro"], ["groups"]),
        (["groups", ""], ["delete", "delete-offsets", "describe", "list", "reset-offsets"]),
        (["groups", "reset-offsets", "--to-"], ["current", "datetime", "earliest", "latest"]),
        (["consume", "--isolation", ""], ["read_committed", "read_uncommitted"]),
        (["server", "--lis"], ["--listen"]),
        (["consume", "t"], []),
        (["nope", ""], []),
    ],
)
def test_shell_is_told_what_may_follow(words: list[str], found: list[str]) -> None:
    command = [PROGRAM, "completion", "--words", "--", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    shown = [line.removeprefix("--to-") for line in done.stdout.splitlines()]
    assert [each for each in shown if each != "offset"] == found


def test_bash_completes_with_the_script() -> None:
    script = f"""
    PATH={Path(PROGRAM).parent}:$PATH
    source <(kraft-wire completion bash)
    COMP_WORDS=(kraft-wire topics add-p); COMP_CWORD=2
    _kraft_wire
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("add-partitions\n", "")


def test_group_of_commands_alone_shows_its_help() -> None:
    done = subprocess.run([PROGRAM, "topics"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: kraft-wire topics [OPTIONS] COMMAND [ARGS]...\n")


def test_what_a_user_typed_comes_back_as_it_was_typed(tmp_path: Path) -> None:
    for verb in (["repair", "[b]:b:"], ["sim", "--seeds", "a:b:c"]):
        done = subprocess.run([PROGRAM, *verb], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert verb[-1] in done.stderr


def test_a_story_that_is_no_text_is_one_line(tmp_path: Path) -> None:
    story = tmp_path / "story.txt"
    story.write_bytes(b"\xd0\x00")
    done = subprocess.run(
        [PROGRAM, "sim", "--script", str(story)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"kraft-wire sim: {story}: not a text file (invalid continuation byte)"
    ]


def test_question_without_a_yes_and_an_interruption_end_a_verb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = typer.Typer()

    @app.command()
    def ask(answer: int) -> None:
        if answer == 3:
            raise KeyboardInterrupt
        if answer == 2:
            return
        raise typer.Abort

    for answer, code, text in ((1, 1, "kraft-wire acls: aborted\n"), (2, 0, ""), (3, 130, "")):
        with pytest.raises(SystemExit) as ended:
            main._run_typer(app, "acls", [str(answer)])
        assert (ended.value.code, capsys.readouterr().err) == (code, text)
    monkeypatch.setattr(main, "_run_verb", raised(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130


def raised(error: BaseException) -> Callable[[], None]:
    """Return a function that raises."""

    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("arguments", "code"), [([], 2), (["help"], 0), (["--help"], 0), (["-h"], 0)]
)
def test_commands_are_listed_by_every_word_for_help(
    arguments: list[str],
    code: int,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["kraft-wire", *arguments])
    with pytest.raises(SystemExit) as ended:
        main._run_verb()
    lines = capsys.readouterr().out.splitlines()
    assert ended.value.code == code
    assert lines[:2] == ["Usage: kraft-wire [OPTIONS] COMMAND [ARGS]...", ""]
    assert lines[-len(main.COMMANDS) - 1] == "Commands:"
    assert lines[-1] == "  completion    Print a completion script for a shell."
    assert [line.split()[0] for line in lines[-len(main.COMMANDS) :]] == list(main.COMMANDS)

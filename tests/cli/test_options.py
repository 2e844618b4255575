"""What people type: options, ranges and defaults of every verb are those that are written down."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from typer import Typer
from typer.testing import CliRunner

from kraft_wire.cli.main import COMMANDS

WRITTEN = Path(__file__).with_name("options.txt")
"""A line for each option. `python -m tests.cli.test_options` writes it anew; others read it too."""


def options(app: Typer, *path: str) -> Iterator[str]:
    """The names of a verb's options, their ranges and defaults, and of the verbs below it."""
    text = CliRunner().invoke(app, [*path[1:], "--help"]).stdout
    for block in re.split(r"\n  (?=-)", text.partition("\nOptions:")[2].partition("\n\n")[0])[1:]:
        names = re.match(r"--?\w[\w-]*((, |/)--?\w[\w-]*)*", block)
        facts = re.search(r"\[[^\[\]]*(default:|required|x[<>]=?|<=?x)[^\[\]]*\]$", block)
        assert names is not None, block
        shown = "" if facts is None else f" {' '.join(facts[0].split())}"
        yield f"{' '.join(path)} {names[0]}{shown}"
    for line in text.partition("\nCommands:\n")[2].splitlines():
        if re.match(r"  \w", line):
            yield from options(app, *path, line.split()[0])


def lines_of(verb: str) -> list[str]:
    app = getattr(import_module(COMMANDS[verb][0]), "app", None)
    return list(options(app, verb)) if isinstance(app, Typer) else []


@pytest.mark.parametrize("verb", COMMANDS)
def test_options_of_a_verb_are_those_that_are_written_down(verb: str) -> None:
    written = [line for line in WRITTEN.read_text().splitlines() if line.split()[0] == verb]
    assert lines_of(verb) == written


if __name__ == "__main__":
    WRITTEN.write_text("".join(f"{line}\n" for verb in COMMANDS for line in lines_of(verb)))

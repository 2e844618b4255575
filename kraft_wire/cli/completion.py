"""`kraft-wire completion`: a script for the shell, and the words that it asks for.

The words come from the verbs' own definitions, so that no list is kept by hand. Where a command
has none to offer the shell completes names of files.
"""

import sys
from collections.abc import Sequence
from enum import EnumType
from importlib import import_module
from typing import Annotated, Any, Final

import typer

from kraft_wire.cli.output import WrongInput, refusals
from kraft_wire.cli.suggestions import unknown_name

__all__ = ["app", "candidates"]

app = typer.Typer(add_completion=False, rich_markup_mode=None)

_ASK: Final = "kraft-wire completion --words --"
_SCRIPTS: Final = {
    "bash": f"""\
_kraft_wire() {{
    local IFS=$'\\n'
    COMPREPLY=($(compgen -W "$({_ASK} "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null)" \\
        -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _kraft_wire kraft-wire
""",
    "zsh": f"""\
#compdef kraft-wire
_kraft_wire() {{
    local -a found
    found=(${{(f)"$({_ASK} "${{(@)words[2,CURRENT]}}" 2>/dev/null)"}})
    if (( $#found )); then compadd -a found; else _files; fi
}}
compdef _kraft_wire kraft-wire
""",
    "fish": f"""\
function __kraft_wire
    set -l found ({_ASK} (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c kraft-wire -f -a '(__kraft_wire)'
""",
}


@app.command(context_settings={"ignore_unknown_options": True})
def completion(
    shell: Annotated[
        list[str] | None,
        typer.Argument(metavar="SHELL", help=f"One of {', '.join(_SCRIPTS)}."),
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="Print the possible next words instead.")
    ] = False,
) -> None:
    """Print a completion script: `source <(kraft-wire completion bash)`."""
    given = shell or []
    if words:
        sys.stdout.write("".join(f"{each}\n" for each in candidates(given)))
        return
    with refusals("completion"):
        if len(given) != 1:
            raise WrongInput(f"give one shell: {', '.join(_SCRIPTS)}")
        if given[0] not in _SCRIPTS:
            raise WrongInput(unknown_name("shell", given[0], _SCRIPTS))
    sys.stdout.write(_SCRIPTS[given[0]])


def candidates(words: Sequence[str]) -> list[str]:
    """Return the completions of the last word, none if it is a name or a value."""
    from kraft_wire.cli.main import COMMANDS

    *before, current = words or [""]
    if not before:
        found = [*COMMANDS, "--help", "--version"]
    elif before[0] == "server":
        from kraft_wire.cli.server.command import OPTIONS

        found = [*OPTIONS] if current.startswith("-") else []
    elif before[0] in COMMANDS:
        command = typer.main.get_command(import_module(COMMANDS[before[0]][0]).app)
        found = _of_command(command, before[1:], current)
    else:
        found = []
    return sorted(each for each in found if each.startswith(current))


def _of_command(command: Any, before: Sequence[str], current: str) -> list[str]:
    """Return the commands, options or values that a command accepts after some words."""
    rest = list(before)
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    if hasattr(command, "commands") and not current.startswith("-"):
        return list(command.commands)
    options = [each for each in command.params if each.opts[0].startswith("-")]
    taking = next((each for each in options if rest and rest[-1] in each.opts), None)
    if taking is not None and not getattr(taking, "is_flag", False):
        return _choices(taking)
    if current.startswith("-"):
        return ["--help", *(name for each in options for name in each.opts if name[:2] == "--")]
    return []


def _choices(option: Any) -> list[str]:
    """Return the values of an option that has a list of them; typer keeps it in two ways."""
    described = getattr(option, "type_descriptor", None)
    if described is None:
        return [str(each) for each in getattr(option.type, "choices", ())]
    kind = described.annotation
    is_enum = isinstance(kind, EnumType)
    return [str(each.value) for each in kind.__members__.values()] if is_enum else []

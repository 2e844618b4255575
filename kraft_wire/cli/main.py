"""The `kraft-wire` command: one verb per line of the table below, imported when it is asked for.

`server` parses its own arguments and never imports typer or rich, which would double the time to
the first answer; the other verbs are typer applications of their own.
"""

import gc
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kraft_wire.cli.kafka_flags import translated
from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.cli.system_refusals import system_refusal

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = {
    "server": ("kraft_wire.cli.server.command", "run a Kafka node: broker, controller or both"),
    "format": (
        "kraft_wire.cli.format.command",
        "format log directories, as kafka-storage format does",
    ),
    "random-uuid": (
        "kraft_wire.cli.format.random_uuid",
        "generate an id for a cluster or a directory",
    ),
    "quorum": ("kraft_wire.cli.quorum.command", "describe, watch and change the metadata quorum"),
    "cluster": (
        "kraft_wire.cli.cluster.command",
        "run a cluster on this machine, and check any cluster",
    ),
    "conform": (
        "kraft_wire.conformance.command",
        "test whether a broker behaves as Apache Kafka does",
    ),
    "proxy": (
        "kraft_wire.testing.proxy.command",
        "relay clients to any Kafka, with faults and a trace",
    ),
    "topics": (
        "kraft_wire.cli.topics.command",
        "list, create, describe, delete and configure topics",
    ),
    "configs": (
        "kraft_wire.cli.configs.command",
        "describe, change and explain settings",
    ),
    "produce": ("kraft_wire.cli.produce.command", "write records to a topic"),
    "consume": ("kraft_wire.cli.consume.command", "print records of topics"),
    "groups": ("kraft_wire.cli.groups.command", "list, describe, reset and delete groups"),
    "transactions": (
        "kraft_wire.cli.transactions.command",
        "list, describe and abort transactions, and find hanging ones",
    ),
    "acls": ("kraft_wire.cli.acls.command", "list, add and remove access-control entries"),
    "users": ("kraft_wire.cli.users.command", "list users, set and delete their SCRAM credentials"),
    "tokens": (
        "kraft_wire.cli.tokens.command",
        "create, list, renew and expire delegation tokens",
    ),
    "quotas": ("kraft_wire.cli.quotas.command", "describe and set quotas of users and clients"),
    "wire": ("kraft_wire.cli.wire.command", "decode, encode and explain Kafka's messages"),
    "dump": ("kraft_wire.cli.dump.command", "print the files of a log directory"),
    "repair": ("kraft_wire.cli.repair", "find and remove damage in a stopped node's log directory"),
    "audit": ("kraft_wire.cli.audit", "check log directories for damage and lost records"),
    "spark": ("kraft_wire.cli.spark.command", "read logs, snapshots and topics as Spark tables"),
    "sim": (
        "kraft_wire.cli.sim.command",
        "simulate clusters under faults and check every event",
    ),
    "completion": ("kraft_wire.cli.completion", "print a completion script for a shell"),
}
_COULD_NOT_RUN: Final = 2
_HELP_COLUMNS_MAX: Final = 120
"""Help texts are as wide as the terminal, up to this width."""
_NOBODY_READS: Final = 1
_ABORTED: Final = 1
_INTERRUPTED: Final = 130
_GARBAGE_OBJECTS: Final = 200_000
"""More than the imports of a verb create: searching them for garbage takes 6 % of its start."""
_UNKNOWN_COMMAND: Final = re.compile(r"No such command '([^']+)'")


def main() -> None:
    """Run the verb of the command line; an error of the system is one line and exit code 2."""
    _fill_standard_streams()
    try:
        try:
            _run_verb()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        _forget_output()
        sys.exit(_NOBODY_READS)
    except OSError as error:
        _forget_output()
        sys.stderr.write(f"kraft-wire: {system_refusal(error)}\n")
        sys.exit(_COULD_NOT_RUN)


def _forget_output() -> None:
    """Discard buffered output, or the interpreter would report an error at its exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _fill_standard_streams() -> None:
    """Put /dev/null where a stream was closed: a socket or a log would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # it stays open as long as the process


def _run_verb() -> None:
    arguments = sys.argv[1:]
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h", "help"):
        sys.stdout.write(_usage())
        sys.exit(0 if arguments else _COULD_NOT_RUN)
    if verb == "--version":
        from importlib.metadata import version

        sys.stdout.write(f"kraft-wire {version('kraft-wire')}\n")
        return
    if verb not in COMMANDS:
        sys.stderr.write(f"kraft-wire: {unknown_name('command', verb, COMMANDS)} (see --help)\n")
        sys.exit(_COULD_NOT_RUN)
    if verb == "server":
        from kraft_wire.cli.server.command import run_server

        sys.exit(run_server(arguments[1:]))
    gc.set_threshold(_GARBAGE_OBJECTS)
    _run_typer(import_module(COMMANDS[verb][0]).app, verb, translated(verb, arguments[1:]))


def _run_typer(app: "Typer", verb: str, arguments: Sequence[str]) -> None:
    """Run a verb; an error in its arguments is one line, like every other refusal."""
    from typer import Abort, BadParameter
    from typer.main import get_command

    # Typer has no name for the class of all that it refuses, and older ones take click's.
    refusal: type[Exception] = BadParameter.__mro__[2]
    assert refusal.__name__ == "ClickException", refusal
    command = _with_plain_arguments(get_command(app))
    try:
        exit_code = command.main(
            arguments,
            prog_name=f"kraft-wire {verb}",
            standalone_mode=False,
            max_content_width=_HELP_COLUMNS_MAX,
        )
    except refusal as error:
        sys.stderr.write(_refusal_text(error, verb))
        sys.exit(_COULD_NOT_RUN)
    except Abort:  # "no" to a question, or the end of the input
        sys.stderr.write(f"kraft-wire {verb}: aborted\n")
        sys.exit(_ABORTED)
    sys.exit(exit_code or 0)


def _with_plain_arguments(command: Any) -> Any:
    """Hide Python's types of arguments in help texts, which newer versions of typer show."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    for nested in getattr(command, "commands", {}).values():
        _with_plain_arguments(nested)
    return command


def _no_type(ctx: object) -> None:
    """Return no type to show."""


def _refusal_text(error: Exception, verb: str) -> str:
    """Return the one line, or the whole help where a group of commands was named alone."""
    message: str = error.format_message()  # type: ignore[attr-defined]  # every refusal has it
    if type(error).__name__ == "NoArgsIsHelpError":
        return f"{message}\n"
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else f"kraft-wire {verb}"
    command = _UNKNOWN_COMMAND.match(message)
    if command is not None and context is not None:
        message = unknown_name("command", command[1], context.command.commands)
    option = getattr(error, "option_name", None)
    if option is not None and type(error).__name__ == "NoSuchOption" and context is not None:
        known = [name for each in context.command.params for name in each.opts]
        message = unknown_name("option", option, known)
    return f"{path}: {' '.join(message.split()).rstrip('.')} (see --help)\n"


def _usage() -> str:
    """Return the commands in the form in which typer shows a command's own."""
    width = max(map(len, COMMANDS))
    verbs = "".join(
        f"  {verb:<{width}}  {what[0].upper()}{what[1:]}.\n" for verb, (_, what) in COMMANDS.items()
    )
    return f"""\
Usage: kraft-wire [OPTIONS] COMMAND [ARGS]...

  Run, use and inspect Apache Kafka clusters. COMMAND --help shows the options.

Options:
  --version  Show the version and exit.
  --help     Show this message and exit.

Commands:
{verbs}"""


if __name__ == "__main__":
    main()

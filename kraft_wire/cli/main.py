"""The `kraft-wire` command: one verb per line of the table below, imported when it is asked for.

`server` parses its own arguments and never imports typer or rich, which would double the time to
the first answer; the other verbs are typer applications of their own.
"""

import sys
from importlib import import_module
from typing import Final

__all__ = ["main"]

_VERBS: Final = {
    "server": ("kraft_wire.cli.server", "serve one Kafka node"),
    "format": ("kraft_wire.cli.format", "prepare log directories, as kafka-storage format does"),
    "random-uuid": ("kraft_wire.cli.random_uuid", "draw an id for a cluster or a directory"),
    "topics": ("kraft_wire.cli.topics", "list, create, describe, delete and configure topics"),
    "wire": ("kraft_wire.cli.wire", "decode, encode and explain Kafka's messages"),
    "dump": ("kraft_wire.cli.dump", "show what stands in the files of a log directory"),
    "repair": ("kraft_wire.cli.repair", "show and cut damage in a stopped node's log directory"),
}
_COULD_NOT_RUN: Final = 2


def main() -> None:
    """Run the verb that the command line names."""
    arguments = sys.argv[1:]
    verb = arguments[0] if arguments else "--help"
    if verb in ("--help", "-h", "help"):
        sys.stdout.write(_usage())
        sys.exit(0 if arguments else _COULD_NOT_RUN)
    if verb == "--version":
        from importlib.metadata import version

        sys.stdout.write(f"kraft-wire {version('kraft-wire')}\n")
        return
    if verb not in _VERBS:
        sys.stderr.write(f"kraft-wire: {verb!r} is no command (see --help)\n")
        sys.exit(_COULD_NOT_RUN)
    if verb == "server":
        from kraft_wire.cli.server import run_server

        sys.exit(run_server(arguments[1:]))
    app = import_module(_VERBS[verb][0]).app
    app(args=arguments[1:], prog_name=f"kraft-wire {verb}")


def _usage() -> str:
    width = max(map(len, _VERBS))
    verbs = "".join(f"  {verb:<{width}}  {what}\n" for verb, (_, what) in _VERBS.items())
    return f"Usage: kraft-wire COMMAND …\n\n{verbs}\nkraft-wire COMMAND --help says more.\n"


if __name__ == "__main__":
    main()

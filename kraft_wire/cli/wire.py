"""`kraft-wire wire`: the codecs from the command line.

`decode` and `encode` answer JSON lines (the contract of outside judges), `hexdump` shows a message
byte by byte, `schema` shows what a message consists of in which version.
"""

import functools
import sys
from typing import Annotated

import typer

from kraft_wire.cli.wire_lines import answer_decode, answer_encode
from kraft_wire.cli.wire_pipe import limit_memory, pipe_lines

__all__ = ["app", "main"]

app = typer.Typer(
    help="Decode, encode and explain Kafka's messages.", no_args_is_help=True, add_completion=False
)


@app.command()
def decode(
    strict: Annotated[
        bool, typer.Option("--strict", help="Also list what Apache's decoder lets pass.")
    ] = False,
) -> None:
    """Answer JSON lines {kind, name, version, hex} on standard input with {json} or {error}."""
    limit_memory()
    answer = functools.partial(answer_decode, strict=strict)
    pipe_lines(sys.stdin.fileno(), sys.stdout.fileno(), answer)


@app.command()
def encode() -> None:
    """Answer JSON lines {kind, name, version, json} on standard input with {hex} or {error}."""
    limit_memory()
    pipe_lines(sys.stdin.fileno(), sys.stdout.fileno(), answer_encode)


def main() -> None:
    """Run the command group by itself."""
    app()


if __name__ == "__main__":
    main()

"""`kraft-wire wire`: the codecs from the command line.

`decode` and `encode` answer JSON lines (the contract of outside judges), `hexdump` shows a message
byte by byte, `schema` shows what a message consists of in which version, `apis` lists API keys.
"""

import contextlib
import functools
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from kraft_wire.cli.tables import print_table
from kraft_wire.cli.wire.apis import apis_json, apis_table
from kraft_wire.cli.wire.lines import answer_decode, answer_encode
from kraft_wire.cli.wire.pipe import limit_memory, pipe_lines
from kraft_wire.cli.wire.views import (
    dissection_json,
    dissection_table,
    schema_json,
    schema_table,
)
from kraft_wire.wire.dissect import dissect, dissect_frame
from kraft_wire.wire.generated.registry import MESSAGES, message_table
from kraft_wire.wire.schema import MessageTable

__all__ = ["app", "main"]


app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)


@app.command()
def decode(
    strict: Annotated[
        bool, typer.Option("--strict", help="Report violations that Apache's decoder accepts.")
    ] = False,
) -> None:
    """Decode JSON lines of messages on standard input.

    {kind, name, version, hex} is answered with {json} or {error}.
    """
    limit_memory()
    answer = functools.partial(answer_decode, strict=strict)
    pipe_lines(sys.stdin.fileno(), sys.stdout.fileno(), answer)


@app.command()
def encode() -> None:
    """Encode JSON lines of messages on standard input.

    {kind, name, version, json} is answered with {hex} or {error}.
    """
    limit_memory()
    pipe_lines(sys.stdin.fileno(), sys.stdout.fileno(), answer_encode)


@app.command()
def hexdump(
    source: Annotated[str, typer.Argument(help="A file, or the bytes in hex.", metavar="FILE|HEX")],
    request: Annotated[str | None, typer.Option(metavar="NAME", help="Name of a request.")] = None,
    response: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of a response.")
    ] = None,
    record: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of any other message.")
    ] = None,
    version: Annotated[
        int | None, typer.Option(metavar="N", help="Version (default: the newest).")
    ] = None,
    frame: Annotated[
        bool, typer.Option("--frame", help="The bytes start with size and header.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the bytes of a message beside its fields.

    A malformed message is shown up to the error.
    """
    table = _asked_table(request, response, record)
    if frame and record is not None:
        raise typer.BadParameter("--frame needs --request or --response")
    data = _bytes_of(source)
    cut = dissect_frame if frame else dissect
    found = cut(table, data, table.max_version if version is None else version)
    if as_json:
        typer.echo(json.dumps(dissection_json(found, data)))
    else:
        print_table(dissection_table(found, data))
    if found.error is not None:
        raise typer.Exit(1)


@app.command()
def schema(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Message name; Fetch means request and response.")
    ],
    version: Annotated[
        int | None, typer.Option(metavar="N", help="Fields of this version only.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show fields, types, versions and defaults of a message."""
    tables = [message_table(found) for found in _names_like(name, ("", "Request", "Response"))]
    if not tables:
        raise typer.BadParameter(f"unknown message {name!r}")
    for table in tables:
        if version is not None and not table.min_version <= version <= table.max_version:
            known = f"{table.min_version} to {table.max_version}"
            raise typer.BadParameter(f"versions of {table.name}: {known}")
        if as_json:
            typer.echo(json.dumps(schema_json(table, version)))
        else:
            print_table(schema_table(table, version))


@app.command()
def apis(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List every API key with its versions and listeners."""
    if as_json:
        typer.echo(json.dumps(apis_json()))
    else:
        print_table(apis_table())


def _asked_table(request: str | None, response: str | None, record: str | None) -> MessageTable:
    """Return the table of the one message that the three options name."""
    asked = [
        (name, suffixes)
        for name, suffixes in (
            (request, ("Request", "")),
            (response, ("Response", "")),
            (record, ("", "Record", "Value", "Key", "Message", "Data")),
        )
        if name is not None
    ]
    if len(asked) != 1:
        raise typer.BadParameter("give one of --request, --response and --record")
    names = _names_like(*asked[0])
    if not names:
        raise typer.BadParameter(f"unknown message {asked[0][0]!r}")
    return message_table(names[0])


def _names_like(name: str, suffixes: tuple[str, ...]) -> list[str]:
    """Return the names that `name` with one of the suffixes means, letter case aside."""
    by_lower = {known.lower(): known for known in MESSAGES}
    wanted = [f"{name}{suffix}".lower() for suffix in suffixes]
    return [by_lower[each] for each in wanted if each in by_lower]


def _bytes_of(source: str) -> bytes:
    """Return the bytes of a hexadecimal text, or else of the file with that name."""
    with contextlib.suppress(ValueError):
        return bytes.fromhex(source)
    try:
        return Path(source).read_bytes()
    except FileNotFoundError as error:
        raise typer.BadParameter(f"{source[:60]!r} is neither hexadecimal nor a file") from error
    except OSError as error:
        raise typer.BadParameter(f"{source[:60]!r}: {error.strerror}") from error


def main() -> None:
    """Run the command group by itself."""
    app()


if __name__ == "__main__":
    main()

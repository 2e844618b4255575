"""`kraft-wire tokens`: create, list, renew and expire delegation tokens.

Options are those of kafka-delegation-tokens. Exit codes: 0 done, 1 the cluster refused, 2 could not
run.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from datetime import UTC, datetime
from typing import Annotated

import typer

from kraft_wire.cli.bootstrap import Controllers, Servers
from kraft_wire.cli.command_config import secured
from kraft_wire.cli.output import (
    AsJson,
    WrongInput,
    administered,
    new_table,
    print_json,
    print_table,
    refusals,
)
from kraft_wire.cli.tokens.admin import (
    Token,
    create_token,
    described_tokens,
    expire_token,
    renew_token,
)
from kraft_wire.model import Principal

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Hmac = Annotated[str, typer.Option("--hmac", metavar="BASE64", help="HMAC of the token.")]
_LAST_YEAR_MS = 253_402_300_799_999
"""The end of the year 9999."""


@app.command("create")
def create_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    owner_principal: Annotated[
        str | None,
        typer.Option(
            "--owner-principal", metavar="TYPE:NAME", help="Owner (default: who logs in)."
        ),
    ] = None,
    renewer_principal: Annotated[
        list[str] | None,
        typer.Option("--renewer-principal", metavar="TYPE:NAME", help="May renew and expire it."),
    ] = None,
    max_life_time_period: Annotated[
        int,
        typer.Option(
            "--max-life-time-period",
            metavar="MS",
            help="Longest life; -1 means delegation.token.max.lifetime.ms.",
        ),
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """Create a token, and print its HMAC: the password of its holder."""
    with refusals("tokens"):
        owner = owner_principal and _principal("--owner-principal", owner_principal)
        renewers = [_principal("--renewer-principal", each) for each in renewer_principal or ()]
    with administered("tokens", bootstrap_server, bootstrap_controller) as connection:
        token = create_token(connection, renewers, owner or None, max_life_time_period)
    if as_json:
        print_json(token._asdict())
    else:
        _print([token])


@app.command("list")
def list_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    owner_principal: Annotated[
        list[str] | None,
        typer.Option(
            "--owner-principal", metavar="TYPE:NAME", help="Owner or renewer (default: all)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tokens that the user may see, with their HMACs."""
    with refusals("tokens"):
        owners = [_principal("--owner-principal", each) for each in owner_principal or ()]
    with administered("tokens", bootstrap_server, bootstrap_controller) as connection:
        found = described_tokens(connection, owners or None)
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        _print(found)


@app.command("renew")
def renew_command(
    hmac: Hmac,
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    renew_time_period: Annotated[
        int,
        typer.Option(
            "--renew-time-period",
            metavar="MS",
            help="Time from now; -1 means delegation.token.expiry.time.ms.",
        ),
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """Move the end of a token."""
    with refusals("tokens"):
        secret = _decoded(hmac)
    with administered("tokens", bootstrap_server, bootstrap_controller) as connection:
        ends_ms = renew_token(connection, secret, renew_time_period)
    _print_end(ends_ms, as_json=as_json)


@app.command("expire")
def expire_command(
    hmac: Hmac,
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    expiry_time_period: Annotated[
        int,
        typer.Option(
            "--expiry-time-period", metavar="MS", help="Time from now; -1 removes it at once."
        ),
    ] = -1,
    as_json: AsJson = False,
) -> None:
    """End a token, by default at once."""
    with refusals("tokens"):
        secret = _decoded(hmac)
    with administered("tokens", bootstrap_server, bootstrap_controller) as connection:
        ends_ms = expire_token(connection, secret, expiry_time_period)
    _print_end(ends_ms, as_json=as_json)


def _principal(option: str, text: str) -> Principal:
    """Return the principal of `Type:name`. Errors: WrongInput."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise WrongInput(f"{option}: {text!r} is not of the form Type:name, such as User:ann")
    return Principal(kind, name)


def _decoded(hmac: str) -> bytes:
    """Return the bytes of an HMAC; an error does not show it. Errors: WrongInput."""
    try:
        return b64decode(hmac, validate=True)
    except Base64Error:
        raise WrongInput("--hmac: the HMAC is not base64") from None


def _print(tokens: list[Token]) -> None:
    table = new_table(
        "token", "hmac", "owner", "requester", "renewers", "issued", "expires", "latest end"
    )
    for each in tokens:
        texts = each.owner, each.requester, ", ".join(each.renewers) or "-"
        times = map(_time, (each.issued_ms, each.expires_ms, each.max_ms))
        table.add_row(each.token_id, each.hmac, *texts, *times)
    print_table(table)


def _print_end(ends_ms: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"expires_ms": ends_ms})
    else:
        print(f"the token expires at {_time(ends_ms)}")


def _time(at_ms: int) -> str:
    at = datetime.fromtimestamp(max(0, min(at_ms, _LAST_YEAR_MS)) / 1_000, UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


secured(app)

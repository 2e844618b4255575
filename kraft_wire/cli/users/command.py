"""`kraft-wire users`: list users, set and delete their SCRAM credentials.

Exit codes: 0 done, 1 the cluster refused, 2 could not run.
"""

import sys
from pathlib import Path
from typing import Annotated, Final

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
from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.cli.users.admin import (
    MECHANISMS,
    delete_credentials,
    described_credentials,
    set_credential,
)
from kraft_wire.client.refused import AdminRefused
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

_ITERATIONS_MAX: Final = 16_384
"""As in Kafka: more would keep this machine busy for long."""

User = Annotated[str, typer.Argument(metavar="USER", help="The user.")]


@app.command("list")
def list_command(
    users: Annotated[
        list[str] | None, typer.Argument(metavar="USER", help="Users; none means all.")
    ] = None,
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    as_json: AsJson = False,
) -> None:
    """List users with their mechanisms and iterations."""
    with administered("users", bootstrap_server, bootstrap_controller) as connection:
        found = described_credentials(connection, users or ())
    if as_json:
        print_json([each._asdict() for each in found])
        return
    table = new_table("user", "mechanism", "iterations")
    for each in found:
        table.add_row(each.user, each.mechanism, str(each.iterations))
    print_table(table)


@app.command("set-scram")
def set_scram_command(
    user: User,
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            "-m",
            metavar="NAME",
            help="Mechanism (default: SCRAM-SHA-256 and SCRAM-SHA-512).",
        ),
    ] = None,
    iterations: Annotated[
        int,
        typer.Option(
            "--iterations", min=1, max=_ITERATIONS_MAX, metavar="N", help="4096 to 16384."
        ),
    ] = 4096,
    password_file: Annotated[
        Path | None,
        typer.Option(
            "--password-file", metavar="FILE", help="First line is the password; - is stdin."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set a user's password, from a prompt or a file."""
    with refusals("users"):
        mechanisms = _mechanisms(mechanism)
        password = _password(password_file)
    with administered("users", bootstrap_server, bootstrap_controller) as connection:
        for each in mechanisms:
            set_credential(connection, user, each, iterations, password)
    if as_json:
        print_json({"user": user, "set": mechanisms})
        return
    for each in mechanisms:
        print(f"{user}: {each} set with {iterations} iterations")


@app.command("delete")
def delete_command(
    user: User,
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism", "-m", metavar="NAME", help="Mechanism (default: all of the user)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Delete the credentials of a user."""
    with refusals("users"):
        mechanisms = _mechanisms(mechanism)
    with administered("users", bootstrap_server, bootstrap_controller) as connection:
        known = described_credentials(connection, [user])
        found = [each for each in known if each.mechanism in mechanisms]
        if not found:
            raise AdminRefused(
                f"user {user}", ErrorCode.RESOURCE_NOT_FOUND, "there is no such credential"
            )
        delete_credentials(connection, found)
    deleted = [each.mechanism for each in found]
    if as_json:
        print_json({"user": user, "deleted": deleted})
        return
    for each in deleted:
        print(f"{user}: {each} deleted")


def _mechanisms(names: list[str] | None) -> list[str]:
    """Return the mechanisms named, or all. Errors: WrongInput."""
    for name in names or ():
        if name not in MECHANISMS:
            raise WrongInput(f"--mechanism: {unknown_name('mechanism', name, MECHANISMS)}")
    return list(dict.fromkeys(names or MECHANISMS))


def _password(file: Path | None) -> str:
    """Return the password, which no command line should show. Errors: WrongInput."""
    if file is None:
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))
    data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        lines = data.decode().splitlines()
    except UnicodeDecodeError as error:
        raise WrongInput(f"{file}: not a text file ({error.reason})") from error
    if not lines or not lines[0]:
        raise WrongInput(f"{file}: the first line is empty")
    return lines[0]


secured(app)

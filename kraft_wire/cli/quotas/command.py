"""`kraft-wire quotas`: describe and set quotas of users, clients and addresses.

Options are those of kafka-configs. Exit codes: 0 done, 1 the cluster refused, 2 could not run.
"""

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
from kraft_wire.cli.properties_options import pairs_of
from kraft_wire.cli.quotas.admin import (
    CLIENT,
    IP,
    USER,
    Entity,
    alter_quotas,
    described_quotas,
    entity_text,
)

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="A user.")]
UserDefaults = Annotated[
    bool, typer.Option("--user-defaults", help="All users without a quota of their own.")
]
Client = Annotated[str | None, typer.Option("--client", metavar="ID", help="A client id.")]
ClientDefaults = Annotated[
    bool, typer.Option("--client-defaults", help="All clients without a quota of their own.")
]
Ip = Annotated[str | None, typer.Option("--ip", metavar="ADDRESS", help="An address.")]
IpDefaults = Annotated[
    bool, typer.Option("--ip-defaults", help="All addresses without a quota of their own.")
]


@app.command("describe")
def describe_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    user: User = None,
    user_defaults: UserDefaults = False,
    client: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    as_json: AsJson = False,
) -> None:
    """Show quotas, of one entity or of all."""
    with refusals("quotas"):
        entity = _entity(user, user_defaults, client, client_defaults, ip, ip_defaults)
    with administered("quotas", bootstrap_server, bootstrap_controller) as connection:
        found = described_quotas(connection, entity)
    if as_json:
        print_json([each._asdict() for each in found])
        return
    table = new_table("entity", "quota", "value")
    for each in found:
        for key, value in each.values.items():
            table.add_row(entity_text(each.entity), key, f"{value:.15g}")
    print_table(table)


@app.command("set")
def set_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    user: User = None,
    user_defaults: UserDefaults = False,
    client: Client = None,
    client_defaults: ClientDefaults = False,
    ip: Ip = None,
    ip_defaults: IpDefaults = False,
    add_config: Annotated[
        list[str] | None,
        typer.Option("--add-config", metavar="QUOTA=VALUE,...", help="Set quotas."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="QUOTA,...", help="Remove quotas."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set or remove quotas of one entity."""
    with refusals("quotas"):
        entity = _entity(user, user_defaults, client, client_defaults, ip, ip_defaults)
        if not entity:
            raise WrongInput(
                "give --user, --client or --ip, or one of --user-defaults, --client-defaults "
                "and --ip-defaults"
            )
        values = _values([pair for text in add_config or () for pair in text.split(",")])
        removed = [key for text in delete_config or () for key in text.split(",")]
        if not values and not removed:
            raise WrongInput("nothing to do: give --add-config or --delete-config")
    with administered("quotas", bootstrap_server, bootstrap_controller) as connection:
        alter_quotas(connection, entity, values, removed)
    if as_json:
        print_json({"entity": entity, "set": values, "deleted": removed})
        return
    for key, value in values.items():
        print(f"{entity_text(entity)}: {key} set to {value:.15g}")
    for key in removed:
        print(f"{entity_text(entity)}: {key} removed")


def _entity(
    user: str | None,
    user_defaults: bool,
    client: str | None,
    client_defaults: bool,
    ip: str | None,
    ip_defaults: bool,
) -> Entity:
    """Return the entity of the options. Errors: WrongInput for a name and the default at once."""
    found: Entity = {}
    for kind, option, name, is_default in (
        (USER, "user", user, user_defaults),
        (CLIENT, "client", client, client_defaults),
        (IP, "ip", ip, ip_defaults),
    ):
        if name is not None and is_default:
            raise WrongInput(f"give one of --{option} and --{option}-defaults")
        if name is not None or is_default:
            found[kind] = name
    return found


def _values(pairs: list[str]) -> dict[str, float]:
    """Read `quota=number`. Errors: WrongInput."""
    values = {}
    for key, text in pairs_of(pairs).items():
        try:
            values[key] = float(text)
        except ValueError as error:
            raise WrongInput(f"{key}: {text} is not a number") from error
    return values


secured(app)

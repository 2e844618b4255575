"""The output of `kraft-wire wire apis`: the registry of API keys, as a table and as JSON."""

from rich.table import Table

from kraft_wire.apis.api import Api, ListenerType
from kraft_wire.apis.registry import APIS
from kraft_wire.cli.tables import new_table

__all__ = ["apis_json", "apis_table"]


def apis_table() -> Table:
    """Return one row for each API key of the release."""
    table = new_table()
    table.add_column("key", justify="right")
    for title in ("name", "versions", "broker listener", "controller listener", "forwardable"):
        table.add_column(title, overflow="fold")
    for api in APIS.values():
        owners = (_owner(api, ListenerType.BROKER), _owner(api, ListenerType.CONTROLLER))
        versions = f"{api.versions[0]}-{api.versions[1]}"
        shown = [each or "-" for each in owners]
        is_forwardable = "yes" if api.is_forwardable else "no"
        table.add_row(str(api.key), api.name, versions, *shown, is_forwardable)
    return table


def apis_json() -> list[dict[str, object]]:
    """Return the registry with the rights that each API needs on each kind of listener.

    Kafka's names of the versions stay beside those in snake_case.
    """
    return [
        {
            "key": api.key,
            "name": api.name,
            "min_version": api.versions[0],
            "max_version": api.versions[1],
            "minVersion": api.versions[0],
            "maxVersion": api.versions[1],
            "forwardable": api.is_forwardable,
            "listeners": {
                each.value: {
                    "owner": _owner(api, each),
                    "needs": [str(need) for need in api.needs_on(each)],
                    "refused": [
                        None if need.refused is None else need.refused.name
                        for need in api.needs_on(each)
                    ],
                }
                for each in api.listeners
            },
        }
        for api in APIS.values()
    ]


def _owner(api: Api, listener: ListenerType) -> str | None:
    owner = api.owner_on(listener)
    return None if owner is None else owner.value

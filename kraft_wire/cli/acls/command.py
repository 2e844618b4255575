"""`kraft-wire acls`: list, add and remove access-control entries of any cluster.

Options are those of kafka-acls. Exit codes: 0 done, 1 the cluster refused, 2 could not run.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from kraft_wire.apis.rights import ResourceType
from kraft_wire.cli.acls.admin import add_acls, listed_acls, remove_acls
from kraft_wire.cli.acls.entries import (
    Resource,
    convenience,
    entries,
    filters,
    named,
    pattern_number,
    principals,
    resources_of,
)
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
from kraft_wire.metadata.acl_rules import (
    ANY,
    CLUSTER_NAME,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSION_TYPES,
    RESOURCE_TYPES,
    AclFilter,
)
from kraft_wire.metadata.image import AclImage

__all__ = ["app"]

app = typer.Typer(add_completion=False, no_args_is_help=True, rich_markup_mode=None)

Topics = Annotated[
    list[str] | None, typer.Option("--topic", "-t", metavar="TOPIC", help="A topic; * means all.")
]
Groups = Annotated[
    list[str] | None, typer.Option("--group", "-g", metavar="GROUP", help="A group; * means all.")
]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster.")]
TransactionalIds = Annotated[
    list[str] | None,
    typer.Option("--transactional-id", metavar="ID", help="A transactional id; * means all."),
]
Tokens = Annotated[
    list[str] | None, typer.Option("--delegation-token", metavar="ID", help="A delegation token.")
]
UserPrincipals = Annotated[
    list[str] | None,
    typer.Option("--user-principal", metavar="TYPE:NAME", help="A user, as a resource."),
]
PatternType = Annotated[
    str,
    typer.Option(
        "--resource-pattern-type",
        metavar="TYPE",
        help="literal or prefixed; to list and remove also match and any.",
    ),
]
Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-principal", metavar="TYPE:NAME", help="Principal to allow, such as User:ann."
    ),
]
Denied = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-principal", metavar="TYPE:NAME", help="Principal to deny, such as User:ann."
    ),
]
AllowHosts = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="IP", help="Address to allow (default: any)."),
]
DenyHosts = Annotated[
    list[str] | None,
    typer.Option("--deny-host", metavar="IP", help="Address to deny (default: any)."),
]
Operations = Annotated[
    list[str] | None,
    typer.Option("--operation", metavar="NAME", help="Read, Write, ... (default: All)."),
]
Producer = Annotated[bool, typer.Option("--producer", help="All rights that a producer needs.")]
Consumer = Annotated[bool, typer.Option("--consumer", help="All rights that a consumer needs.")]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: IdempotentWrite to the cluster.")
]


@app.command("list")
def list_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: PatternType = "literal",
    principal: Annotated[
        list[str] | None,
        typer.Option("--principal", metavar="TYPE:NAME", help="Entries about this principal."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List entries, of all resources or of those named."""
    with refusals("acls"):
        resources = _resources(
            topic, group, cluster, transactional_id, delegation_token, user_principal
        )
        pattern = pattern_number(resource_pattern_type, is_filter=True)
        asked = filters(resources, pattern, principal or ())
    with administered("acls", bootstrap_server, bootstrap_controller) as connection:
        found = listed_acls(connection, asked)
    _print(found, as_json=as_json)


@app.command("add")
def add_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: PatternType = "literal",
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    as_json: AsJson = False,
) -> None:
    """Add entries that allow or deny."""
    with refusals("acls"):
        resources = _resources(
            topic, group, cluster, transactional_id, delegation_token, user_principal
        )
        who = principals(
            allow_principal or (), deny_principal or (), allow_host or (), deny_host or ()
        )
        if not who:
            raise WrongInput("give --allow-principal or --deny-principal")
        wanted = _wanted(resources, operation or (), producer, consumer, idempotent)
        acls = entries(wanted, who, pattern_number(resource_pattern_type, is_filter=False))
    with administered("acls", bootstrap_server, bootstrap_controller) as connection:
        add_acls(connection, acls)
    _print(acls, as_json=as_json)


@app.command("remove")
def remove_command(
    bootstrap_server: Servers = None,
    bootstrap_controller: Controllers = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: Cluster = False,
    transactional_id: TransactionalIds = None,
    delegation_token: Tokens = None,
    user_principal: UserPrincipals = None,
    resource_pattern_type: PatternType = "literal",
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    allow_host: AllowHosts = None,
    deny_host: DenyHosts = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    force: Annotated[
        bool, typer.Option("--force", help="Remove all entries of a resource without a question.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove entries: those that add would make, or all of a resource."""
    with refusals("acls"):
        resources = _resources(
            topic, group, cluster, transactional_id, delegation_token, user_principal
        )
        who = principals(
            allow_principal or (), deny_principal or (), allow_host or (), deny_host or ()
        )
        pattern = pattern_number(resource_pattern_type, is_filter=True)
        wanted = _wanted(resources, operation or (), producer, consumer, idempotent)
        asked = [_filter_of(acl) for acl in entries(wanted, who, pattern)]
        if not who:
            if operation or producer or consumer:
                raise WrongInput("give --allow-principal or --deny-principal too")
            if not force:
                typer.confirm("Remove all entries of these resources?", abort=True, err=True)
            asked = filters(resources, pattern)
    with administered("acls", bootstrap_server, bootstrap_controller) as connection:
        removed = remove_acls(connection, asked)
    _print(removed, as_json=as_json)


def _resources(
    topics: Sequence[str] | None,
    groups: Sequence[str] | None,
    cluster: bool,
    transactional_ids: Sequence[str] | None,
    tokens: Sequence[str] | None,
    users: Sequence[str] | None,
) -> list[Resource]:
    return resources_of(
        {
            ResourceType.TOPIC: topics,
            ResourceType.GROUP: groups,
            ResourceType.CLUSTER: [CLUSTER_NAME] if cluster else None,
            ResourceType.TRANSACTIONAL_ID: transactional_ids,
            ResourceType.DELEGATION_TOKEN: tokens,
            ResourceType.USER: users,
        }
    )


def _wanted(
    resources: Sequence[Resource],
    operations: Sequence[str],
    producer: bool,
    consumer: bool,
    idempotent: bool,
) -> list[tuple[Resource, int]]:
    """Return operations on resources. Errors: WrongInput."""
    if not resources:
        raise WrongInput(
            "give --topic, --group, --cluster, --transactional-id, --delegation-token "
            "or --user-principal"
        )
    if not (producer or consumer or idempotent):
        return named(resources, operations)
    if operations:
        raise WrongInput("--producer and --consumer have operations of their own")
    return convenience(resources, producer=producer, consumer=consumer, idempotent=idempotent)


def _filter_of(acl: AclImage) -> AclFilter:
    """Return a filter that matches this entry; of a cluster's the pattern may be any."""
    is_cluster = acl.resource_type == ResourceType.CLUSTER
    return AclFilter(
        acl.resource_type,
        acl.resource_name,
        ANY if is_cluster else acl.pattern_type,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )


def _print(acls: Sequence[AclImage], *, as_json: bool) -> None:
    rows = [
        {
            "resource_type": _word(RESOURCE_TYPES, acl.resource_type),
            "resource_name": acl.resource_name,
            "pattern_type": _word(PATTERN_TYPES, acl.pattern_type),
            "principal": acl.principal,
            "host": acl.host,
            "operation": _word(OPERATIONS, acl.operation),
            "permission": _word(PERMISSION_TYPES, acl.permission_type),
        }
        for acl in acls
    ]
    if as_json:
        print_json(rows)
        return
    table = new_table("type", "name", "pattern", "principal", "host", "operation", "permission")
    for row in rows:
        table.add_row(*row.values())
    print_table(table)


def _word(names: Mapping[int, str], code: int) -> str:
    """Return the word of a code; a later release may have others."""
    return names.get(code, str(code)).lower()


secured(app)

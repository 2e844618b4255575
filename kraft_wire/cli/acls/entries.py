"""Entries and filters out of the options of kafka-acls.

A command line names resources, principals, hosts and operations; each combination is an entry. For
`--producer` and `--consumer` the operations are those that such a client needs.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kraft_wire.apis.rights import AclOperation, ResourceType
from kraft_wire.cli.output import WrongInput
from kraft_wire.cli.suggestions import unknown_name
from kraft_wire.metadata.acl_rules import (
    ANY,
    CLUSTER_NAME,
    OPERATIONS,
    PATTERN_TYPES,
    RESOURCE_TYPES,
    AclFilter,
)
from kraft_wire.metadata.authorizer.operation_bits import OPERATIONS_OF
from kraft_wire.metadata.image import AclImage

__all__ = [
    "Resource",
    "Who",
    "convenience",
    "entries",
    "filters",
    "named",
    "pattern_number",
    "principals",
    "resources_of",
]

_ALL: Final = 2
_LITERAL: Final = 3
_DENY, _ALLOW = 2, 3
_EVERY_HOST: Final = "*"


class Resource(NamedTuple):
    """The resource of entries."""

    type: ResourceType
    name: str


class Who(NamedTuple):
    """A principal at a host, and whether it is allowed or denied."""

    principal: str
    host: str
    permission: int


def resources_of(named: Mapping[ResourceType, Sequence[str] | None]) -> list[Resource]:
    """Return the resources of the options, in their order."""
    return [Resource(kind, name) for kind, names in named.items() for name in names or ()]


def pattern_number(text: str, *, is_filter: bool) -> int:
    """Return the code of a pattern type; entries are literal or prefixed. Errors: WrongInput."""
    known = {
        name.lower(): number
        for number, name in PATTERN_TYPES.items()
        if is_filter or number >= _LITERAL
    }
    if text.lower() not in known:
        raise WrongInput(f"--resource-pattern-type: {unknown_name('type', text.lower(), known)}")
    return known[text.lower()]


def _operation_number(text: str) -> int:
    """Return the code of `Read`, `DescribeConfigs`, `describe_configs`. Errors: WrongInput."""
    known = {name.replace("_", "").lower(): number for number, name in OPERATIONS.items()}
    del known["any"]
    word = text.replace("_", "").lower()
    if word not in known:
        raise WrongInput(f"--operation: {unknown_name('operation', word, known)}")
    return known[word]


def principals(
    allowed: Sequence[str],
    denied: Sequence[str],
    allow_hosts: Sequence[str],
    deny_hosts: Sequence[str],
) -> list[Who]:
    """Return each principal at each of its hosts; without hosts it is every one."""
    for option, hosts, names in (("allow", allow_hosts, allowed), ("deny", deny_hosts, denied)):
        if hosts and not names:
            raise WrongInput(f"--{option}-host needs --{option}-principal")
    for name in (*allowed, *denied):
        if ":" not in name:
            raise WrongInput(f"{name} is not a principal: write User:{name}")
    return [
        Who(name, host, permission)
        for names, hosts, permission in (
            (allowed, allow_hosts, _ALLOW),
            (denied, deny_hosts, _DENY),
        )
        for name in names
        for host in hosts or [_EVERY_HOST]
    ]


def convenience(
    resources: Sequence[Resource], *, producer: bool, consumer: bool, idempotent: bool
) -> list[tuple[Resource, int]]:
    """Return the entries that a producer or a consumer needs.

    Errors: WrongInput for a resource that is missing.
    """
    kinds = {each.type for each in resources}
    if ResourceType.TOPIC not in kinds:
        raise WrongInput("--producer and --consumer need --topic")
    if consumer and ResourceType.GROUP not in kinds:
        raise WrongInput("--consumer needs --group")
    if idempotent and not producer:
        raise WrongInput("--idempotent needs --producer")
    wanted = [
        (each, operation.value)
        for each in resources
        for operation in _operations_of_client(each.type, producer, consumer)
    ]
    if idempotent:
        cluster = Resource(ResourceType.CLUSTER, CLUSTER_NAME)
        wanted.append((cluster, AclOperation.IDEMPOTENT_WRITE.value))
    return list(dict.fromkeys(wanted))


def _operations_of_client(
    kind: ResourceType, producer: bool, consumer: bool
) -> Iterator[AclOperation]:
    if producer and kind in (ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID):
        yield from (AclOperation.WRITE, AclOperation.DESCRIBE)
        if kind is ResourceType.TOPIC:
            yield AclOperation.CREATE
    if consumer and kind in (ResourceType.TOPIC, ResourceType.GROUP):
        yield AclOperation.READ
        if kind is ResourceType.TOPIC:
            yield AclOperation.DESCRIBE


def named(resources: Sequence[Resource], operations: Sequence[str]) -> list[tuple[Resource, int]]:
    """Return each resource with each operation, all if none is named.

    Errors: WrongInput for an operation that a resource does not have.
    """
    codes = [_operation_number(each) for each in operations] or [_ALL]
    for resource in resources:
        for code in codes:
            if code != _ALL and code not in OPERATIONS_OF[resource.type]:
                kind = RESOURCE_TYPES[resource.type].lower()
                allowed = ", ".join(each.name.lower() for each in OPERATIONS_OF[resource.type])
                raise WrongInput(
                    f"{OPERATIONS[code].lower()} means nothing for a {kind}: it has all, {allowed}"
                )
    return [(resource, code) for resource in resources for code in codes]


def entries(
    wanted: Sequence[tuple[Resource, int]], who: Sequence[Who], pattern: int
) -> list[AclImage]:
    """Return an entry for each operation and principal; a cluster is always literal."""
    return [
        AclImage(
            resource.type,
            resource.name,
            _LITERAL if resource.type is ResourceType.CLUSTER else pattern,
            each.principal,
            each.host,
            operation,
            each.permission,
        )
        for resource, operation in wanted
        for each in who
    ]


def filters(
    resources: Sequence[Resource], pattern: int, names: Sequence[str] = ()
) -> list[AclFilter]:
    """Return filters for all entries of resources (default: all) and principals (default: all)."""
    who: Sequence[str | None] = names or [None]
    if not resources:
        return [AclFilter(ANY, None, ANY, name, None, ANY, ANY) for name in who]
    return [
        AclFilter(each.type, each.name, pattern, name, None, ANY, ANY)
        for each in resources
        for name in who
    ]

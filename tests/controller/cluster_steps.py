"""Requests that change quotas, SCRAM credentials, ACLs and features: each right and wrong way.

Sent to Apache Kafka by `record_cluster_answers.py` (answers in observed/) and to our controller and
broker by `test_cluster_answers.py`. Steps build on each other: order matters.
"""

from base64 import b64encode
from typing import Any

from tests.controller.admin_steps import Json, Step

Entity = dict[str, str | None]
Ops = dict[str, float | None]


def quotas(*entries: tuple[Entity, Ops], version: int = 1, validate_only: bool = False) -> Step:
    """An AlterClientQuotas request; a value of None removes the key."""
    body = {
        "entries": [
            {
                "entity": [{"entityType": kind, "entityName": name} for kind, name in who.items()],
                "ops": [
                    {"key": key, "value": 0.0 if value is None else value, "remove": value is None}
                    for key, value in ops.items()
                ],
            }
            for who, ops in entries
        ],
        "validateOnly": validate_only,
    }
    return Step("AlterClientQuotas", version, body)


EXACT, DEFAULT, ANY = range(3)


def described(
    *components: tuple[str, int, str | None], strict: bool = False, version: int = 1
) -> Step:
    """A DescribeClientQuotas request: entity type, match type, name."""
    body = {
        "components": [
            {"entityType": kind, "matchType": match, "match": name}
            for kind, match, name in components
        ],
        "strict": strict,
    }
    return Step("DescribeClientQuotas", version, body)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def scram(
    upsertions: list[tuple[str, int, int, bytes, bytes]] | None = None,
    deletions: list[tuple[str, int]] | None = None,
) -> Step:
    """An AlterUserScramCredentials request: name, mechanism, iterations, salt, salted password."""
    body = {
        "deletions": [{"name": name, "mechanism": number} for name, number in deletions or []],
        "upsertions": [
            {
                "name": name,
                "mechanism": number,
                "iterations": iterations,
                "salt": _base64(salt),
                "saltedPassword": _base64(password),
            }
            for name, number, iterations, salt, password in upsertions or []
        ],
    }
    return Step("AlterUserScramCredentials", 0, body)


def users(*names: str, every: bool = False) -> Step:
    """A DescribeUserScramCredentials request."""
    body = {"users": None if every else [{"name": name} for name in names]}
    return Step("DescribeUserScramCredentials", 0, body)


def acl(
    name: str = "t",
    principal: str = "User:a",
    *,
    resource: int = 2,
    pattern: int = 3,
    host: str = "*",
    operation: int = 3,
    permission: int = 3,
) -> Json:
    """One AclCreation: by default User:a may read topic t from everywhere."""
    return {
        "resourceType": resource,
        "resourceName": name,
        "resourcePatternType": pattern,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permissionType": permission,
    }


def create_acls(*acls: Json, version: int = 3) -> Step:
    """A CreateAcls request."""
    return Step("CreateAcls", version, {"creations": list(acls)})


def acl_filter(
    resource: int = 1,
    name: str | None = None,
    pattern: int = 1,
    principal: str | None = None,
    host: str | None = None,
    operation: int = 1,
    permission: int = 1,
) -> Json:
    """A filter; by default it matches every entry."""
    return {
        "resourceTypeFilter": resource,
        "resourceNameFilter": name,
        "patternTypeFilter": pattern,
        "principalFilter": principal,
        "hostFilter": host,
        "operation": operation,
        "permissionType": permission,
    }


def describe_acls(wanted: Json, version: int = 3) -> Step:
    """A DescribeAcls request."""
    return Step("DescribeAcls", version, wanted)


def delete_acls(*filters: Json, version: int = 3) -> Step:
    """A DeleteAcls request."""
    return Step("DeleteAcls", version, {"filters": list(filters)})


UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def features(*updates: tuple[str, int, int], version: int = 2, validate_only: bool = False) -> Step:
    """An UpdateFeatures request: feature, level, upgrade type."""
    rows: list[dict[str, Any]] = [
        {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
        if version
        else {"feature": name, "maxVersionLevel": level, "allowDowngrade": kind > UPGRADE}
        for name, level, kind in updates
    ]
    body: Json = {"timeoutMs": 10_000, "featureUpdates": rows}
    if version:
        body["validateOnly"] = validate_only
    return Step("UpdateFeatures", version, body)


USER, CLIENT, IP = "user", "client-id", "ip"
PRODUCER, CONSUMER, REQUESTS = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
MUTATIONS, CONNECTIONS = "controller_mutation_rate", "connection_creation_rate"

QUOTA_STEPS = [
    described(),
    quotas(({USER: "a"}, {PRODUCER: 1000.0})),
    quotas(({USER: "a"}, {PRODUCER: 1000.0})),
    quotas(({USER: "a", CLIENT: "c"}, {PRODUCER: 5.0, CONSUMER: 7.0})),
    quotas(({USER: "a", CLIENT: None}, {REQUESTS: 12.5})),
    quotas(({USER: None}, {MUTATIONS: 0.5}), ({CLIENT: None}, {CONSUMER: 3.0})),
    quotas(({USER: None, CLIENT: "c"}, {PRODUCER: 9.0})),
    quotas(({CLIENT: "c"}, {PRODUCER: 11.0}), version=0),
    quotas(({IP: "127.0.0.1"}, {CONNECTIONS: 4.0}), ({IP: None}, {CONNECTIONS: 100.0})),
    described(),
    described(strict=True),
    described((USER, EXACT, "a")),
    described((USER, EXACT, "a"), strict=True),
    described((USER, DEFAULT, None)),
    described((USER, DEFAULT, None), strict=True),
    described((USER, ANY, None)),
    described((USER, ANY, None), (CLIENT, ANY, None)),
    described((USER, ANY, None), (CLIENT, ANY, None), strict=True),
    described((USER, EXACT, "a"), (CLIENT, DEFAULT, None), strict=True, version=0),
    described((CLIENT, EXACT, "c")),
    described((IP, EXACT, "127.0.0.1")),
    described((IP, ANY, None), strict=True),
    described((USER, EXACT, "nobody")),
    described((USER, EXACT, None)),
    described((USER, DEFAULT, "a")),
    described((USER, ANY, "a")),
    described((USER, 3, None)),
    described((USER, -1, None)),
    described(("", EXACT, "a")),
    described(("other", EXACT, "a")),
    described((USER, ANY, None), (USER, EXACT, "a")),
    described((USER, ANY, None), (IP, ANY, None)),
    described((CLIENT, ANY, None), (IP, ANY, None)),
    quotas(({USER: "b"}, {PRODUCER: 1.0}), validate_only=True),
    described((USER, EXACT, "b")),
    quotas(({USER: "b"}, {PRODUCER: 1.0, CONNECTIONS: 1.0})),
    quotas(({USER: "b"}, {"no.such": 1.0})),
    quotas(({USER: "b"}, {"no.such": None})),
    quotas(({USER: "b"}, {PRODUCER: None})),
    quotas(({USER: "b"}, {PRODUCER: 0.0})),
    quotas(({USER: "b"}, {PRODUCER: -1.0})),
    quotas(({USER: "b"}, {PRODUCER: 1.5})),
    quotas(({USER: "b"}, {PRODUCER: 1e30})),
    quotas(({USER: "b"}, {PRODUCER: 9223372036854775807.0})),
    quotas(({USER: "b"}, {PRODUCER: 1.0000001})),
    quotas(({IP: "127.0.0.1"}, {CONNECTIONS: 2147483648.0})),
    quotas(({IP: "127.0.0.1"}, {CONNECTIONS: 1.5})),
    quotas(({IP: "127.0.0.1"}, {CONNECTIONS: 0.0})),
    quotas(({IP: "127.0.0.1"}, {PRODUCER: 1.0})),
    quotas(({IP: "::1"}, {CONNECTIONS: 1.0})),
    quotas(({IP: "not an address"}, {CONNECTIONS: 1.0})),
    quotas(({IP: ""}, {CONNECTIONS: 1.0})),
    quotas(({IP: "127.0.0.1", USER: "a"}, {CONNECTIONS: 1.0})),
    quotas(({IP: "127.0.0.1", CLIENT: "a"}, {CONNECTIONS: 1.0})),
    quotas(({}, {PRODUCER: 1.0})),
    quotas(({USER: ""}, {PRODUCER: 1.0})),
    quotas(({CLIENT: ""}, {PRODUCER: 1.0})),
    quotas(({"other": "a"}, {PRODUCER: 1.0})),
    quotas(({"": "a"}, {PRODUCER: 1.0})),
    quotas(({USER: "c"}, {})),
    quotas(),
    quotas(({USER: "d"}, {PRODUCER: 1.0}), ({USER: "e"}, {PRODUCER: -1.0})),
    quotas(({USER: "f"}, {PRODUCER: -1.0, CONSUMER: 2.0})),
    described((USER, ANY, None), strict=True),
    quotas(({USER: "a"}, {PRODUCER: None}), ({USER: "d"}, {PRODUCER: None})),
    quotas(({USER: "a", CLIENT: "c"}, {PRODUCER: None})),
    quotas(({CLIENT: "c", USER: "a"}, {CONSUMER: 8.0})),
    quotas(
        ({USER: "a", CLIENT: "c"}, {CONSUMER: 9.0}), ({CLIENT: "c", USER: "a"}, {CONSUMER: 9.0})
    ),
    described(),
]

SHA_256, SHA_512 = 1, 2
SALT, PASSWORD = b"salt-of-the-user", bytes(range(32))

SCRAM_STEPS = [
    users(every=True),
    users("al"),
    scram([("al", SHA_256, 4096, SALT, PASSWORD)]),
    scram([("al", SHA_512, 8192, SALT, PASSWORD * 2), ("bo", SHA_256, 4096, SALT, PASSWORD)]),
    scram([("al", SHA_256, 16384, SALT, PASSWORD)]),
    users(every=True),
    users(),
    users("al"),
    users("al", "bo", "cy"),
    users("al", "al"),
    users("bo", "al", "bo"),
    users(""),
    scram([("cy", SHA_256, 4095, SALT, PASSWORD)]),
    scram([("cy", SHA_512, 4095, SALT, PASSWORD)]),
    scram([("cy", SHA_256, 16385, SALT, PASSWORD)]),
    scram([("cy", SHA_256, -1, SALT, PASSWORD)]),
    scram([("cy", 0, 4096, SALT, PASSWORD)]),
    scram([("cy", 3, 4096, SALT, PASSWORD)]),
    scram([("cy", -5, 4096, SALT, PASSWORD)]),
    scram([("", SHA_256, 4096, SALT, PASSWORD)]),
    scram([("", 9, 4096, SALT, PASSWORD)]),
    scram([("cy", SHA_256, 4096, b"", PASSWORD)]),
    scram([("cz", SHA_256, 4096, SALT, b"")]),
    scram([("cy", SHA_256, 4096, SALT, b"short")]),
    scram([("dd", SHA_256, 4096, SALT, PASSWORD), ("dd", SHA_256, 4096, SALT, PASSWORD)]),
    scram([("dd", SHA_256, 4096, SALT, PASSWORD), ("dd", SHA_512, 4096, SALT, PASSWORD)]),
    scram([("al", SHA_256, 4096, SALT, PASSWORD)], [("al", SHA_256)]),
    scram([("al", SHA_256, 4096, SALT, PASSWORD)], [("al", SHA_512)]),
    scram([("ee", SHA_256, 1, SALT, PASSWORD), ("ee", SHA_512, 4096, SALT, PASSWORD)]),
    scram([("ee", SHA_256, 1, SALT, PASSWORD), ("ff", SHA_256, 4096, SALT, PASSWORD)]),
    scram(None, [("nobody", SHA_256)]),
    scram(None, [("bo", SHA_512)]),
    scram(None, [("bo", SHA_256), ("bo", SHA_256)]),
    scram(None, [("bo", SHA_256), ("bo", SHA_512)]),
    scram(None, [("", SHA_256)]),
    scram(None, [("bo", 7)]),
    scram(None, [("bo", SHA_256)]),
    scram(None, [("bo", SHA_256)]),
    scram(),
    users("bo"),
    users(every=True),
]

NO_AUTHORIZER_STEPS = [
    describe_acls(acl_filter()),
    describe_acls(acl_filter(), version=1),
    create_acls(acl()),
    create_acls(acl(), acl("u"), version=1),
    create_acls(),
    delete_acls(acl_filter()),
    delete_acls(acl_filter(), acl_filter(2), version=2),
    delete_acls(),
]

ACL_STEPS = [
    describe_acls(acl_filter()),
    create_acls(acl()),
    create_acls(acl()),
    create_acls(acl("t"), acl("t", "User:b"), acl("t", host="127.0.0.1"), acl("t", "User:b")),
    create_acls(acl("te", pattern=4), acl("*"), acl("*", pattern=4)),
    create_acls(acl("g", resource=3, operation=2, permission=2), version=2),
    create_acls(acl("g1", resource=3, operation=3), version=1),
    create_acls(acl("kafka-cluster", resource=4, operation=5)),
    create_acls(acl("notcluster", resource=4, operation=5)),
    create_acls(acl("tx", resource=5, operation=8), acl("tok", resource=6, operation=8)),
    create_acls(acl("User:x", resource=7, operation=13)),
    create_acls(acl("fine"), acl(resource=0)),
    create_acls(acl(resource=1), acl("both", resource=1, operation=1)),
    create_acls(acl(resource=9)),
    create_acls(acl(resource=-3)),
    create_acls(acl(pattern=0)),
    create_acls(acl(pattern=1), acl(pattern=2)),
    create_acls(acl(pattern=9)),
    create_acls(acl(operation=0)),
    create_acls(acl(operation=1), acl("all", operation=2), acl("2pc", operation=15)),
    create_acls(acl(operation=99)),
    create_acls(acl(permission=0)),
    create_acls(acl(permission=1), acl("deny", permission=2), acl("", permission=1)),
    create_acls(acl(permission=9)),
    create_acls(acl("")),
    create_acls(acl("", pattern=4)),
    create_acls(acl("t", "nobody")),
    create_acls(acl("t", "")),
    create_acls(acl("t", ":")),
    create_acls(acl("t", ":x")),
    create_acls(acl("t", "User:")),
    create_acls(acl("t", "Group:g")),
    create_acls(acl("t", host="")),
    create_acls(acl("t", host="not a host")),
    create_acls(acl("a name with spaces")),
    create_acls(acl("ok"), acl("")),
    create_acls(),
    describe_acls(acl_filter()),
    describe_acls(acl_filter(), version=1),
    describe_acls(acl_filter(), version=2),
    describe_acls(acl_filter(resource=2)),
    describe_acls(acl_filter(resource=2, name="t")),
    describe_acls(acl_filter(resource=2, name="t", pattern=3)),
    describe_acls(acl_filter(resource=2, name="t", pattern=4)),
    describe_acls(acl_filter(resource=2, name="test", pattern=2)),
    describe_acls(acl_filter(resource=2, name="te", pattern=4)),
    describe_acls(acl_filter(resource=2, name="zzz", pattern=2)),
    describe_acls(acl_filter(resource=2, pattern=2)),
    describe_acls(acl_filter(resource=2, name="*", pattern=2)),
    describe_acls(acl_filter(resource=2, name="*")),
    describe_acls(acl_filter(principal="User:b")),
    describe_acls(acl_filter(principal="nobody")),
    describe_acls(acl_filter(host="127.0.0.1")),
    describe_acls(acl_filter(operation=3)),
    describe_acls(acl_filter(operation=2)),
    describe_acls(acl_filter(permission=2)),
    describe_acls(acl_filter(resource=0)),
    describe_acls(acl_filter(resource=44)),
    describe_acls(acl_filter(pattern=0)),
    describe_acls(acl_filter(pattern=44)),
    describe_acls(acl_filter(operation=0)),
    describe_acls(acl_filter(operation=77)),
    describe_acls(acl_filter(permission=0)),
    describe_acls(acl_filter(permission=44)),
    describe_acls(acl_filter(name="")),
    delete_acls(acl_filter(resource=0)),
    delete_acls(acl_filter(operation=0), acl_filter(resource=3)),
    delete_acls(acl_filter(resource=44), acl_filter(pattern=44), acl_filter(pattern=-1)),
    delete_acls(acl_filter(operation=77), acl_filter(permission=44)),
    delete_acls(acl_filter(resource=44, operation=77)),
    delete_acls(acl_filter(principal="User:b"), acl_filter(resource=2, name="t", pattern=3)),
    delete_acls(acl_filter(resource=5), acl_filter(resource=5), version=2),
    delete_acls(acl_filter(resource=2, name="test", pattern=2), version=1),
    delete_acls(acl_filter(name="no such")),
    delete_acls(),
    describe_acls(acl_filter()),
    delete_acls(acl_filter()),
    describe_acls(acl_filter()),
]

MV, KRAFT = "metadata.version", "kraft.version"

FEATURE_STEPS = [
    features((MV, 21, UPGRADE)),
    features((MV, 22, UPGRADE), validate_only=True),
    features((MV, 22, UPGRADE)),
    features((MV, 21, UPGRADE)),
    features((MV, 21, 0)),
    features((MV, 21, 9)),
    features((MV, 22, SAFE_DOWNGRADE)),
    features((MV, 23, SAFE_DOWNGRADE)),
    features((MV, 21, SAFE_DOWNGRADE), validate_only=True),
    features((MV, 21, SAFE_DOWNGRADE)),
    features((MV, 16, SAFE_DOWNGRADE)),
    features((MV, 16, UNSAFE_DOWNGRADE)),
    features((MV, 6, SAFE_DOWNGRADE)),
    features((MV, 0, SAFE_DOWNGRADE)),
    features((MV, 0, UPGRADE)),
    features((MV, -1, SAFE_DOWNGRADE)),
    features((MV, 99, UPGRADE)),
    features((MV, 20, UPGRADE), version=0),
    features((MV, 20, SAFE_DOWNGRADE), version=0),
    features((MV, 22, UPGRADE), version=0),
    features((MV, 23, UPGRADE), version=1),
    features((MV, 22, SAFE_DOWNGRADE), version=1),
    features((MV, 99, UPGRADE), version=1),
    features(("no.such.feature", 1, UPGRADE)),
    features(("no.such.feature", 0, UPGRADE)),
    features(("no.such.feature", 0, SAFE_DOWNGRADE)),
    features(("no.such.feature", 1, UPGRADE), version=0),
    features(("", 1, UPGRADE)),
    features(("no.such.feature", 1, UPGRADE), (MV, 24, UPGRADE)),
    features((MV, 24, UPGRADE), ("no.such.feature", 1, UPGRADE)),
    features((MV, 24, UPGRADE), (MV, 25, UPGRADE)),
    features(),
    features(version=0),
    features(version=1),
    features((KRAFT, 0, UPGRADE)),
    features((KRAFT, 0, SAFE_DOWNGRADE)),
    features((KRAFT, 2, UPGRADE)),
    features((KRAFT, 1, SAFE_DOWNGRADE)),
    features((KRAFT, 1, UPGRADE), validate_only=True),
    features((MV, 25, UPGRADE), (KRAFT, 0, UPGRADE), validate_only=True),
    features((MV, 30, UPGRADE)),
    features((MV, 29, SAFE_DOWNGRADE)),
    features((MV, 29, UNSAFE_DOWNGRADE)),
    features((KRAFT, 1, UPGRADE)),
    features((KRAFT, 1, UPGRADE)),
    features((KRAFT, 0, SAFE_DOWNGRADE)),
    features((KRAFT, 0, UNSAFE_DOWNGRADE)),
]
"""For a cluster formatted at metadata.version 21 with a static quorum and no other feature."""

"""The verbs of `acls`, `users` and `tokens` on written answers: tables, JSON and refusals."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import pbkdf2_hmac
from pathlib import Path
from typing import Any

import pytest
import typer

from kraft_wire.cli.acls.command import app as acls
from kraft_wire.cli.tokens.command import app as tokens
from kraft_wire.cli.users.command import app as users
from kraft_wire.wire.generated import alter_user_scram_credentials as alter_users
from kraft_wire.wire.generated import create_acls, delete_acls, describe_acls
from kraft_wire.wire.generated import create_delegation_token as create_token
from kraft_wire.wire.generated import describe_delegation_token as describe_tokens
from kraft_wire.wire.generated import describe_user_scram_credentials as describe_users
from kraft_wire.wire.generated import expire_delegation_token as expire_token
from kraft_wire.wire.generated import renew_delegation_token as renew_token
from kraft_wire.wire.generated.error_code import ErrorCode
from kraft_wire.wire.message import Message
from tests.cli.played_cluster import PlayedCluster

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
SHA_256, SHA_512 = 1, 2


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedCluster:
    """A cluster that answers as it is told."""
    return PlayedCluster(monkeypatch)


def acl_resource(kind: int, name: str, *entries: tuple[str, int]) -> Any:
    """A literal resource with its entries: principal and operation."""
    return describe_acls.DescribeAclsResource(
        resource_type=kind,
        resource_name=name,
        pattern_type=3,
        acls=[
            describe_acls.AclDescription(
                principal=principal, host="*", operation=operation, permission_type=3
            )
            for principal, operation in entries
        ],
    )


def test_entries_are_listed_in_order_and_once(played: PlayedCluster) -> None:
    resources = [
        acl_resource(3, "g", ("User:b", 3)),
        acl_resource(2, "t", ("User:b", 4), ("User:b", 3), ("User:a", 99), ("User:b", 4)),
        acl_resource(2, "[s]", ("User:b", 4)),
        acl_resource(77, "odd", ("User:b", 4)),
    ]
    request = describe_acls.DescribeAclsRequest
    response = describe_acls.DescribeAclsResponse
    played.answers[request] = [
        response(resources=resources),
        response(resources=resources),
        response(resources=resources[:1]),
        response(error_code=ErrorCode.SECURITY_DISABLED, error_message="no authorizer"),
    ]
    assert played.run(acls, "list") == (
        0,
        "type   name  pattern  principal  host  operation  permission\n"
        "topic  [s]   literal  User:b     *     write      allow\n"
        "topic  t     literal  User:a     *     99         allow\n"
        "topic  t     literal  User:b     *     read       allow\n"
        "topic  t     literal  User:b     *     write      allow\n"
        "group  g     literal  User:b     *     read       allow\n"
        "77     odd   literal  User:b     *     write      allow\n",
        "",
    )
    rows = json.loads(played.run(acls, "list --topic t --group g --json")[1])
    assert [each["resource_name"] for each in rows] == ["[s]", "t", "t", "t", "g", "odd"]
    asked = played.sent[1:]
    assert [(each.resource_type_filter, each.resource_name_filter) for each in asked] == [
        (2, "t"),
        (3, "g"),
    ]
    assert {(each.operation, each.permission_type, each.principal_filter) for each in asked} == {
        (1, 1, None)
    }
    text = "kraft-wire acls: entries: SECURITY_DISABLED: no authorizer\n"
    assert played.run(acls, "list") == (1, "", text)


def test_entries_that_are_refused_are_named(played: PlayedCluster) -> None:
    add = create_acls
    played.answers[add.CreateAclsRequest] = add.CreateAclsResponse(
        results=[
            add.AclCreationResult(),
            add.AclCreationResult(error_code=DENIED, error_message="not you"),
        ]
    )
    line = "--allow-principal User:a --operation Read --topic t --topic p"
    assert played.run(acls, f"add {line} --resource-pattern-type prefixed") == (
        1,
        "",
        "kraft-wire acls: prefixed topic p: CLUSTER_AUTHORIZATION_FAILED: not you\n",
    )
    remove = delete_acls
    matching = remove.DeleteAclsMatchingAcl
    refused = matching(error_code=DENIED, resource_name="t", error_message="keep")
    found = matching(
        resource_type=2,
        resource_name="t",
        pattern_type=3,
        principal="User:a",
        host="*",
        operation=3,
        permission_type=3,
    )
    played.answers[remove.DeleteAclsRequest] = [
        remove.DeleteAclsResponse(filter_results=[result])
        for result in (
            remove.DeleteAclsFilterResult(matching_acls=[found, found]),
            remove.DeleteAclsFilterResult(error_code=DENIED, error_message="not you"),
            remove.DeleteAclsFilterResult(matching_acls=[found, refused]),
        )
    ]
    assert len(json.loads(played.run(acls, f"remove {line} --json")[1])) == 1
    said = "CLUSTER_AUTHORIZATION_FAILED"
    assert played.run(acls, f"remove {line}") == (
        1,
        "",
        f"kraft-wire acls: entries: {said}: not you\n",
    )
    assert played.run(acls, f"remove {line}")[2] == f"kraft-wire acls: t: {said}: keep\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("add --allow-principal User:a", "give --topic, --group, --cluster, --transactional-id, "),
        (
            "remove --topic t --producer --operation Read",
            "--producer and --consumer have operations of their own",
        ),
        ("remove --topic t --operation Read", "give --allow-principal or --deny-principal too"),
        ("remove --topic t --producer", "give --allow-principal or --deny-principal too"),
        ("remove --topic t --group g --consumer", "give --allow-principal or --deny-principal too"),
    ],
)
def test_entries_without_a_part_are_refused(played: PlayedCluster, words: str, text: str) -> None:
    code, out, err = played.run(acls, words)
    assert (code, out, played.sent) == (2, "", [])
    assert err.startswith(f"kraft-wire acls: {text}")


def described(*rows: tuple[str, int, int], error: int = 0) -> Message:
    """Users with their mechanisms and iterations."""
    made = describe_users
    return made.DescribeUserScramCredentialsResponse(
        results=[
            made.DescribeUserScramCredentialsResult(
                user=user,
                error_code=error,
                error_message="no such user",
                credential_infos=[made.CredentialInfo(mechanism=mechanism, iterations=iterations)],
            )
            for user, mechanism, iterations in rows
        ]
    )


def altered(error: int = 0) -> Message:
    """The result of a change."""
    result = alter_users.AlterUserScramCredentialsResult(user="a", error_code=error)
    return alter_users.AlterUserScramCredentialsResponse(results=[result])


def test_users_are_listed_by_name(played: PlayedCluster) -> None:
    request = describe_users.DescribeUserScramCredentialsRequest
    refused = describe_users.DescribeUserScramCredentialsResponse(
        error_code=DENIED, error_message="not you"
    )
    missing = described(("a", SHA_256, 1), error=ErrorCode.RESOURCE_NOT_FOUND)
    missing.results[0].credential_infos = []  # type: ignore[attr-defined]  # of this response
    both = described(("[b]", SHA_512, 8192), ("a", 9, 5), ("[b]", SHA_256, 4096))
    played.answers[request] = [both, both, missing, refused, described(("a", 1, 1), error=DENIED)]
    assert played.run(users, "list") == (
        0,
        "user  mechanism      iterations\n"
        "[b]   SCRAM-SHA-256  4096\n"
        "[b]   SCRAM-SHA-512  8192\n"
        "a     mechanism 9    5\n",
        "",
    )
    rows = json.loads(played.run(users, "list [b] a --json")[1])
    assert rows[2] == {"user": "a", "mechanism": "mechanism 9", "iterations": 5}
    asked = [each.users for each in played.sent]
    assert (asked[0], [each.name for each in asked[1]]) == (None, ["[b]", "a"])
    assert json.loads(played.run(users, "list a --json")[1]) == []
    text = "CLUSTER_AUTHORIZATION_FAILED"
    assert played.run(users, "list") == (1, "", f"kraft-wire users: users: {text}: not you\n")
    assert played.run(users, "list")[2] == f"kraft-wire users: user a: {text}: no such user\n"


def test_password_becomes_credentials_of_scram(played: PlayedCluster, tmp_path: Path) -> None:
    """RFC 5802: SaltedPassword is Hi(password, salt, i), PBKDF2 with the mechanism's hash."""
    played.answers[alter_users.AlterUserScramCredentialsRequest] = altered()
    file = tmp_path / "password"
    file.write_text("sécret\nother\n", encoding="utf-8")
    words = ["set-scram", "a", "--password-file", str(file)]
    assert played.run(users, words) == (
        0,
        "a: SCRAM-SHA-256 set with 4096 iterations\na: SCRAM-SHA-512 set with 4096 iterations\n",
        "",
    )
    one = ["-m", "SCRAM-SHA-512", "-m", "SCRAM-SHA-512", "--iterations", "5000", "--json"]
    shown = json.loads(played.run(users, [*words, *one])[1])
    assert shown == {"user": "a", "set": ["SCRAM-SHA-512"]}
    found = [each.upsertions[0] for each in played.sent]
    expected = [("sha256", SHA_256, 4096), ("sha512", SHA_512, 4096), ("sha512", SHA_512, 5000)]
    for upsertion, (name, number, iterations) in zip(found, expected, strict=True):
        salted = pbkdf2_hmac(name, "sécret".encode(), upsertion.salt, iterations)
        assert (upsertion.name, upsertion.mechanism, upsertion.iterations) == (
            "a",
            number,
            iterations,
        )
        assert upsertion.salted_password == salted
    assert len({each.salt for each in found}) == 3
    assert {len(each.salt) for each in found} == {24}


@pytest.mark.parametrize(
    ("data", "options", "text"),
    [
        (b"", "", "FILE: the first line is empty"),
        (b"\nx", "", "FILE: the first line is empty"),
        (b"\xff", "", "FILE: not a text file (invalid start byte)"),
        (b"x", "-m SCRAM-SHA-1", '--mechanism: unknown mechanism "SCRAM-SHA-1"; did you mean "SC'),
    ],
)
def test_password_that_cannot_be_read_is_refused(
    played: PlayedCluster, tmp_path: Path, data: bytes, options: str, text: str
) -> None:
    file = tmp_path / "FILE"
    file.write_bytes(data)
    words = ["set-scram", "a", "--password-file", str(file), *options.split()]
    code, out, err = played.run(users, words)
    assert (code, out, played.sent) == (2, "", [])
    assert err.replace(f"{tmp_path}/", "").startswith(f"kraft-wire users: {text}")


def test_credentials_are_deleted_one_by_one(played: PlayedCluster) -> None:
    both = described(("a", SHA_512, 4096), ("a", SHA_256, 4096))
    played.answers[describe_users.DescribeUserScramCredentialsRequest] = both
    played.answers[alter_users.AlterUserScramCredentialsRequest] = [
        *([altered()] * 3),
        altered(DENIED),
    ]
    text = "a: SCRAM-SHA-256 deleted\na: SCRAM-SHA-512 deleted\n"
    assert played.run(users, "delete a") == (0, text, "")
    one = json.loads(played.run(users, "delete a -m SCRAM-SHA-512 --json")[1])
    assert one == {"user": "a", "deleted": ["SCRAM-SHA-512"]}
    sent = [
        each.deletions[0]
        for each in played.sent
        if isinstance(each, alter_users.AlterUserScramCredentialsRequest)
    ]
    assert [(each.name, each.mechanism) for each in sent] == [("a", 1), ("a", 2), ("a", 2)]
    refused = played.run(users, "delete a")
    assert refused == (1, "", "kraft-wire users: user a: CLUSTER_AUTHORIZATION_FAILED\n")
    played.answers[describe_users.DescribeUserScramCredentialsRequest] = described()
    missing = "kraft-wire users: user a: RESOURCE_NOT_FOUND: there is no such credential\n"
    assert played.run(users, "delete a") == (1, "", missing)


HMAC = b64encode(b"secret").decode()


def token(name: str, issued_ms: int, *renewers: str) -> Any:
    """A token of ann, which bob asked for."""
    made = describe_tokens
    return made.DescribedDelegationToken(
        principal_type="User",
        principal_name="ann",
        token_requester_principal_type="User",
        token_requester_principal_name="bob",
        issue_timestamp=issued_ms,
        expiry_timestamp=issued_ms + 1_000,
        max_timestamp=(1 << 63) - 1,
        token_id=name,
        hmac=b"secret",
        renewers=[
            made.DescribedDelegationTokenRenewer(principal_type="User", principal_name=each)
            for each in renewers
        ],
    )


def test_tokens_are_listed_by_time_of_issue(played: PlayedCluster) -> None:
    found = [token("c", 2_000), token("b", 1_000, "x", "y"), token("a", 2_000)]
    response = describe_tokens.DescribeDelegationTokenResponse
    request = describe_tokens.DescribeDelegationTokenRequest
    refused = response(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    played.answers[request] = [response(tokens=found), response(tokens=found), refused]
    _, table, _ = played.run(tokens, "list")
    last = "9999-12-31T23:59:59Z"
    issued = [f"1970-01-01T00:00:0{each}Z" for each in range(4)]
    own = [HMAC, "User:ann", "User:bob"]
    assert [re.split(" {2,}", line) for line in table.splitlines()[1:]] == [
        ["b", *own, "User:x, User:y", issued[1], issued[2], last],
        ["a", *own, "-", issued[2], issued[3], last],
        ["c", *own, "-", issued[2], issued[3], last],
    ]
    shown = json.loads(played.run(tokens, "list --owner-principal User:ann --json")[1])
    assert [each["token_id"] for each in shown] == ["b", "a", "c"]
    assert shown[0] == {
        "token_id": "b",
        "hmac": HMAC,
        "owner": "User:ann",
        "requester": "User:bob",
        "renewers": ["User:x", "User:y"],
        "issued_ms": 1_000,
        "expires_ms": 2_000,
        "max_ms": (1 << 63) - 1,
    }
    first, second = (each.owners for each in played.sent)
    assert first is None
    assert [(each.principal_type, each.principal_name) for each in second] == [("User", "ann")]
    text = "kraft-wire tokens: token: DELEGATION_TOKEN_AUTH_DISABLED\n"
    assert played.run(tokens, "list") == (1, "", text)


def test_token_is_created_for_an_owner(played: PlayedCluster) -> None:
    played.answers[create_token.CreateDelegationTokenRequest] = (
        create_token.CreateDelegationTokenResponse(
            principal_type="User",
            principal_name="ann",
            token_requester_principal_type="User",
            token_requester_principal_name="bob",
            issue_timestamp_ms=1,
            expiry_timestamp_ms=2,
            max_timestamp_ms=3,
            token_id="x",
            hmac=b"secret",
        )
    )
    words = "create --owner-principal User:ann --renewer-principal Group:a:b"
    shown = json.loads(played.run(tokens, f"{words} --max-life-time-period 9 --json")[1])
    assert shown == {
        "token_id": "x",
        "hmac": HMAC,
        "owner": "User:ann",
        "requester": "User:bob",
        "renewers": ["Group:a:b"],
        "issued_ms": 1,
        "expires_ms": 2,
        "max_ms": 3,
    }
    assert played.run(tokens, "create")[1].split()[-8:-3] == [
        "x",
        HMAC,
        "User:ann",
        "User:bob",
        "-",
    ]
    first, second = played.sent
    assert (first.owner_principal_type, first.owner_principal_name) == ("User", "ann")
    (renewer,) = first.renewers
    assert (renewer.principal_type, renewer.principal_name) == ("Group", "a:b")
    assert (second.owner_principal_type, second.owner_principal_name) == ("", "")
    assert (first.max_lifetime_ms, second.max_lifetime_ms, second.renewers) == (9, -1, [])


@pytest.mark.parametrize("verb", ["renew", "expire"])
def test_end_of_a_token_is_moved(played: PlayedCluster, verb: str) -> None:
    module: Any = {"renew": renew_token, "expire": expire_token}[verb]
    request = getattr(module, f"{verb.title()}DelegationTokenRequest")
    response = getattr(module, f"{verb.title()}DelegationTokenResponse")
    done = response(expiry_timestamp_ms=60_999)
    refused = response(error_code=ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    played.answers[request] = [done, done, refused]
    text = "the token expires at 1970-01-01T00:01:00Z\n"
    assert played.run(tokens, f"{verb} --hmac {HMAC}") == (0, text, "")
    option = {"renew": "--renew-time-period", "expire": "--expiry-time-period"}[verb]
    _, shown, _ = played.run(tokens, f"{verb} --hmac {HMAC} {option} 5 --json")
    assert json.loads(shown) == {"expires_ms": 60_999}
    field = {"renew": "renew_period_ms", "expire": "expiry_time_period_ms"}[verb]
    assert [(each.hmac, getattr(each, field)) for each in played.sent] == [
        (b"secret", -1),
        (b"secret", 5),
    ]
    text = "kraft-wire tokens: token: DELEGATION_TOKEN_NOT_FOUND\n"
    assert played.run(tokens, f"{verb} --hmac {HMAC}") == (1, "", text)
    text = "kraft-wire tokens: --hmac: the HMAC is not base64\n"
    assert played.run(tokens, f"{verb} --hmac a*b=") == (2, "", text)


@pytest.mark.parametrize("text", ["ann", ":ann", "User:", ""])
def test_principal_of_another_form_is_refused(played: PlayedCluster, text: str) -> None:
    made: list[tuple[typer.Typer, list[str], str]] = [
        (tokens, ["create", "--renewer-principal", text], "--renewer-principal"),
        (tokens, ["list", "--owner-principal", text], "--owner-principal"),
    ]
    for app, words, option in made:
        said = f"kraft-wire tokens: {option}: {text!r} is not of the form Type:name, such as"
        code, out, err = played.run(app, words)
        assert (code, out, err) == (2, "", f"{said} User:ann\n")

"""A story about delegation tokens, told to a node: requests of several users, and their answers.

Times in answers become differences to the token's issue, ids and HMACs what they must be. The node
has an authorizer, and `SECRET` as its key.
"""

from __future__ import annotations

import hmac
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from kraft_wire.client import BrokerConnection
from kraft_wire.login.client_config import Credentials, Security
from kraft_wire.wire.generated.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from kraft_wire.wire.generated.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kraft_wire.wire.generated.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kraft_wire.wire.generated.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kraft_wire.wire.generated.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from kraft_wire.wire.message import Buffer
from tests.apache.secured_node import ACCOUNTS
from tests.waiting import until

__all__ = ["DAY_MS", "NEAR_MS", "SECRET", "TOKEN_SETTINGS", "Asker", "story", "token_login"]

SECRET = "keyed with this"
DAY_MS = 86_400_000
TOKEN_SETTINGS = {
    "delegation.token.secret.key": SECRET,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:broker;User:ANONYMOUS",
}
CREATE_TOKENS, DESCRIBE_TOKENS, DESCRIBE = 13, 14, 8
TOKEN, USER = 6, 7
NEAR_MS = 60_000
"""Times that differ by less are equal: requests take a while."""


def token_login(token: CreateDelegationTokenResponse, mechanism: str = "SCRAM-SHA-256") -> Security:
    """Return the credentials of a token's holder."""
    password = b64encode(token.hmac).decode()
    login = Credentials(mechanism, token.token_id, password, by_delegation_token=True)
    return Security(None, login)


class Asker:
    """One user's connection to a node."""

    def __init__(self, address: str, who: str | Security | None) -> None:
        if isinstance(who, str):
            who = Security(None, Credentials("PLAIN", who, ACCOUNTS[who]))
        self.connection = BrokerConnection(address, security=who or Security())

    def creates(
        self, renewers: tuple[str, ...] = (), life_ms: int = -1, version: int = 3, **owner: str
    ) -> CreateDelegationTokenResponse:
        """Ask for a token; renewers are `Type:name`."""
        named = [each.partition(":")[::2] for each in renewers]
        request = CreateDelegationTokenRequest(
            owner_principal_type=owner.get("type", ""),
            owner_principal_name=owner.get("name", ""),
            renewers=[CreatableRenewers(principal_type=a, principal_name=b) for a, b in named],
            max_lifetime_ms=life_ms,
        )
        return self.connection.send(request, CreateDelegationTokenResponse, version=version)

    def renews(self, mac: Buffer, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        """Ask to renew a token; return the error and the end."""
        request = RenewDelegationTokenRequest(hmac=bytes(mac), renew_period_ms=period_ms)
        answer = self.connection.send(request, RenewDelegationTokenResponse, version=version)
        return answer.error_code, answer.expiry_timestamp_ms

    def expires(self, mac: Buffer, period_ms: int = -1, version: int = 2) -> tuple[int, int]:
        """Ask to end a token; return the error and the end."""
        request = ExpireDelegationTokenRequest(hmac=bytes(mac), expiry_time_period_ms=period_ms)
        answer = self.connection.send(request, ExpireDelegationTokenResponse, version=version)
        return answer.error_code, answer.expiry_timestamp_ms

    def describes(self, *owners: str, version: int = 3, all_owners: bool = False) -> Any:
        """Return the error, and all of every token."""
        named = [each.partition(":")[::2] for each in owners]
        wanted = [
            DescribeDelegationTokenOwner(principal_type=a, principal_name=b) for a, b in named
        ]
        request = DescribeDelegationTokenRequest(owners=None if all_owners else wanted)
        return self.connection.send(request, DescribeDelegationTokenResponse, version=version)

    def grants(self, who: str, operation: int, resource: int, name: str) -> None:
        """Allow a user something."""
        entry = AclCreation(
            resource_type=resource,
            resource_name=name,
            resource_pattern_type=3,
            principal=who,
            host="*",
            operation=operation,
            permission_type=3,
        )
        answer = self.connection.send(CreateAclsRequest(creations=[entry]), CreateAclsResponse)
        assert answer.results[0].error_code == 0


def story(secure: str, plain: str) -> Iterator[tuple[str, object]]:
    """Tell the story to a node; yield the name and the answer of each step."""
    with ExitStack() as opened:
        yield from _told(opened, secure, plain)


def _told(opened: ExitStack, secure: str, plain: str) -> Iterator[tuple[str, object]]:
    def asker(address: str, who: str | Security | None) -> Asker:
        made = Asker(address, who)
        opened.enter_context(made.connection)
        return made

    ann, bob, root = (asker(secure, who) for who in ("ann", "bob", "broker"))
    open_one = asker(plain, None)
    yield "create without a login", shown(open_one.creates())
    yield "create without a login for another", shown(open_one.creates(type="User", name="bob"))
    yield (
        "renew, expire, describe without a login",
        (
            open_one.renews(b"x"),
            open_one.expires(b"x"),
            open_one.describes(all_owners=True).error_code,
        ),
    )
    made = {}
    for version in (1, 2, 3):
        made[version] = ann.creates(version=version)
        yield f"create v{version}", shown(made[version])
    yield "short life", shown(ann.creates(life_ms=1_000_000))
    yield "long life", shown(ann.creates(life_ms=2**62))
    yield "life of 0", shown(ann.creates(life_ms=0))
    yield "renewers", shown(held := ann.creates(("User:bob", "User:eve")))
    yield "a renewer of another type", shown(ann.creates(("User:bob", "Group:eve")))
    yield "for another without the right", shown(ann.creates(type="User", name="bob"))
    yield "both wrong", shown(ann.creates(("Group:eve",), type="User", name="bob"))
    yield "for oneself by name", shown(ann.creates(type="User", name="ann"))
    yield "for another type without the right", shown(ann.creates(type="Group", name="ann"))
    root.grants("User:ann", CREATE_TOKENS, USER, "User:bob")
    until(lambda: ann.creates(type="User", name="bob").error_code == 0, lambda: "the entry")
    yield "for another", shown(of_bob := ann.creates(type="User", name="bob"))
    yield "by a super user for another", shown(root.creates(type="User", name="eve"))

    yield "renew: unknown", ann.renews(b"nothing")
    yield "renew: nobody's", ann.renews(b"")
    yield "renew: stranger", bob.renews(made[3].hmac)
    yield "renew: super user", root.renews(made[3].hmac)
    until(lambda: of_bob.token_id in ids(ann.describes(all_owners=True)), lambda: "the token")
    yield "renew: requester", ann.renews(of_bob.hmac)
    for period_ms in (-1, 0, 1_000_000, 2**62):
        answers = [who.renews(held.hmac, period_ms) for who in (ann, bob)]
        yield f"renew by {period_ms}", [(code, near(ends, held)) for code, ends in answers]
    yield "renew v1", [near(each, held) for each in ann.renews(held.hmac, 1_000_000, version=1)]

    yield "expire: unknown", ann.expires(b"nothing")
    yield "expire: stranger", bob.expires(made[3].hmac)
    yield "expire: super user", root.expires(made[3].hmac)
    yield "expire: later", near_end(bob.expires(held.hmac, 2_000_000), held)
    yield "expire: beyond its life", near_end(bob.expires(held.hmac, 2**62), held)
    yield "expire: v1", near_end(bob.expires(held.hmac, 3_000_000, version=1), held)
    yield "expire: at once", near_end(bob.expires(held.hmac, -7), held)
    until(lambda: held.token_id not in ids(ann.describes(all_owners=True)), lambda: "its end")
    yield "expire: again", ann.expires(held.hmac, -7)
    yield "expire: now", near_end(ann.expires(made[1].hmac, 0), made[1])
    until(lambda: has_ended(ann.describes(all_owners=True), made[1].token_id), lambda: "its end")
    yield "renew: ended", ann.renews(made[1].hmac)
    yield "renew: ended, stranger", bob.renews(made[1].hmac)
    yield "expire: ended", ann.expires(made[1].hmac, 5)
    yield "expire: ended, stranger", bob.expires(made[1].hmac, 5)
    yield "expire: ended, at once", near_end(ann.expires(made[1].hmac), made[1])

    until(lambda: made[1].token_id not in ids(ann.describes(all_owners=True)), lambda: "its end")
    yield "describe: none", described(ann.describes())
    for version in (1, 2, 3):
        yield f"describe v{version}", described(ann.describes(all_owners=True, version=version))
    yield "describe: another's", described(bob.describes(all_owners=True))
    yield "describe: by owner", described(ann.describes("User:ann"))
    yield "describe: by other owner", described(ann.describes("User:bob", "User:eve"))
    yield "describe: by super user", described(root.describes(all_owners=True))
    root.grants("User:bob", DESCRIBE, TOKEN, made[2].token_id)
    until(lambda: made[2].token_id in ids(bob.describes(all_owners=True)), lambda: "the entry")
    yield "describe: by right on a token", described(bob.describes(all_owners=True))
    root.grants("User:bob", DESCRIBE_TOKENS, USER, "User:ann")
    until(lambda: made[3].token_id in ids(bob.describes(all_owners=True)), lambda: "the entry")
    yield "describe: by right on the owner", described(bob.describes(all_owners=True))

    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        holder = asker(secure, token_login(of_bob, mechanism))
        yield f"{mechanism}: create", shown(holder.creates())
        yield f"{mechanism}: create for another", shown(holder.creates(type="User", name="eve"))
        yield (
            f"{mechanism}: others",
            (
                holder.renews(of_bob.hmac),
                holder.expires(of_bob.hmac),
                described(holder.describes(all_owners=True)),
            ),
        )


def shown(answer: CreateDelegationTokenResponse) -> list[object]:
    """Return what is the same for every node in the answer to CreateDelegationToken."""
    expected = hmac.digest(SECRET.encode(), answer.token_id.encode(), "sha512")
    return [
        answer.error_code,
        f"{answer.principal_type}:{answer.principal_name}",
        f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}",
        *(
            value if value < 1 else value - answer.issue_timestamp_ms
            for value in (answer.expiry_timestamp_ms, answer.max_timestamp_ms)
        ),
        min(answer.issue_timestamp_ms, 1),
        len(answer.token_id),
        "right" if answer.hmac == expected else bytes(answer.hmac),
    ]


def near(time_ms: int, token: CreateDelegationTokenResponse) -> int:
    """Return a time as a difference to the token's issue, in minutes."""
    return time_ms if time_ms < 1_000 else (time_ms - token.issue_timestamp_ms) // NEAR_MS


def near_end(answer: tuple[int, int], token: CreateDelegationTokenResponse) -> tuple[int, int]:
    """Return the error, and the time as a difference."""
    return answer[0], near(answer[1], token)


def ids(answer: DescribeDelegationTokenResponse) -> list[str]:
    """Return the ids of the tokens in an answer."""
    return [each.token_id for each in answer.tokens]


def has_ended(answer: DescribeDelegationTokenResponse, token_id: str) -> bool:
    """Return whether a token is past its end; asking for a renewal could succeed instead."""
    now_ms = time.time() * 1_000
    ends_ms = [each.expiry_timestamp for each in answer.tokens if each.token_id == token_id]
    return any(each + 2 < now_ms for each in ends_ms)


def described(answer: DescribeDelegationTokenResponse) -> list[object]:
    """Return what is the same for every node in the answer to DescribeDelegationToken."""
    found = sorted(
        (
            f"{token.principal_type}:{token.principal_name}",
            f"{token.token_requester_principal_type}:{token.token_requester_principal_name}",
            (token.max_timestamp - token.issue_timestamp),
            (token.expiry_timestamp - token.issue_timestamp) // NEAR_MS,
            len(token.token_id),
            token.hmac == hmac.digest(SECRET.encode(), token.token_id.encode(), "sha512"),
            [f"{each.principal_type}:{each.principal_name}" for each in token.renewers],
        )
        for token in answer.tokens
    )
    return [answer.error_code, *found]

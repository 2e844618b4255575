"""The authorizer's keys: its class, the super users, and the decision without entries.

KIP-801. `super.users` and `allow.everyone.if.no.acl.found` are keys of the class, which Kafka does
not list among broker keys. Like Kafka, a node reads them only at its start.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from kraft_wire.metadata.acl_rules import AUTHORIZER_KEY, STANDARD_AUTHORIZER
from kraft_wire.metadata.authorizer.principal import super_users
from kraft_wire.node.config.sources import ConfigReader, Setting

__all__ = ["AUTHORIZER_KEYS", "AuthorizerSettings", "read_authorizer"]

_SUPER_USERS: Final = "super.users"
_ALLOWS_WITHOUT_ACL: Final = "allow.everyone.if.no.acl.found"
AUTHORIZER_KEYS: Final = (_ALLOWS_WITHOUT_ACL, _SUPER_USERS)
"""Keys of StandardAuthorizer, which Kafka does not list among broker keys."""


class AuthorizerSettings(NamedTuple):
    """The settings of `StandardAuthorizer`."""

    super_users: frozenset[str]
    allows_without_acl: bool


def read_authorizer(
    reader: ConfigReader, merged: Mapping[str, Setting]
) -> AuthorizerSettings | None:
    """Return the authorizer's settings, None without one.

    Errors: ConfigError for another class, and for super users that are not `Type:Name`.
    """
    name = reader.settings.text(AUTHORIZER_KEY)
    if not name:
        return None
    if name != STANDARD_AUTHORIZER:
        raise reader.error(AUTHORIZER_KEY, f"only {STANDARD_AUTHORIZER} can be used")
    given = merged.get(_SUPER_USERS)
    allows = merged.get(_ALLOWS_WITHOUT_ACL)
    try:
        users = super_users("" if given is None else given.value)
    except ValueError as problem:
        raise reader.error(_SUPER_USERS, str(problem)) from problem
    return AuthorizerSettings(users, allows is not None and allows.value.lower() == "true")

"""A client's principal and address, as the texts that access-control entries have.

A principal has a type and a name; its text is `Type:Name`. An address is the text that Java's
`InetAddress.getHostAddress` gives, because entries hold that text.
"""

from ipaddress import IPv6Address, ip_address
from typing import Final

from kraft_wire.model import Principal

__all__ = ["EVERYONE", "entries_name", "host_text", "super_users"]

EVERYONE: Final = "User:*"
"""An entry's principal that matches principals of every type."""
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""Characters that Java's `String.trim` removes."""


def entries_name(principal: Principal) -> str:
    """Return the text that entries may have for a principal; an entry's type ends at a colon."""
    return EVERYONE if ":" in principal.type else str(principal)


def super_users(text: str) -> frozenset[str]:
    """Return the principals of the key `super.users`, as texts.

    Errors: ValueError for a text that is not `Type:Name`.
    """
    found = [each.strip(_TRIMMED) for each in text.split(";")]
    for each in filter(None, found):
        if ":" not in each:
            raise ValueError(f"super.users: {each!r} is not of the form Type:Name")
    users = frozenset(filter(None, found))
    assert "" not in users, text
    return users


def host_text(address: str) -> str:
    """Return an address as entries have it: IPv6 in Java's long form, a mapped IPv4 as IPv4.

    Errors: ValueError for a text that is not an address.
    """
    parsed = ip_address(address)
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    groups = (int(each, 16) for each in IPv6Address(int(parsed)).exploded.split(":"))
    scope = "" if parsed.scope_id is None else f"%{parsed.scope_id}"
    long = ":".join(f"{each:x}" for each in groups)
    assert long.count(":") == 7, long
    return long + scope

"""A client's principal and address, as the texts that access-control entries have.

A principal has a type and a name; its text is `Type:Name`. An address is the text that Java's
`InetAddress.getHostAddress` gives, because entries hold that text.
"""

from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

__all__ = ["ANONYMOUS", "EVERYONE", "Principal", "host_text", "super_users"]

EVERYONE: Final = "User:*"
"""An entry's principal that matches principals of every type."""
_TRIMMED: Final = "".join(map(chr, range(0x21)))
"""Characters that Java's `String.trim` removes."""


class Principal(NamedTuple):
    """One authenticated client, or the client whose request a broker forwards."""

    type: str
    name: str

    def __str__(self) -> str:
        """Return the principal as `Type:Name`."""
        return f"{self.type}:{self.name}"

    @property
    def entries_name(self) -> str:
        """The text that entries may have for it; an entry's type ends at the first colon."""
        return EVERYONE if ":" in self.type else f"{self.type}:{self.name}"


ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""A client that has not authenticated."""


def super_users(text: str) -> frozenset[str]:
    """Return the principals of the key `super.users`, as texts.

    Errors: ValueError for what is not `Type:Name`.
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

    Errors: ValueError for a text that is no address.
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

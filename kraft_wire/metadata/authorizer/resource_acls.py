"""The entries about one type of resource, indexed for look-ups by name, principal and host.

Three look-ups find an entry: its pattern, its principal, its host. A name is covered by its own
literal pattern, by the literal `*`, and by each prefix of it; only the lengths of existing prefixes
are tried. So the cost of a decision does not depend on the number of entries.
"""

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from kraft_wire.metadata.authorizer.principal import EVERYONE

__all__ = ["WILDCARD", "Grants", "Pattern", "ResourceAcls"]

WILDCARD: Final = "*"
"""The literal name that covers every name, and the host that means every host."""

Grants = dict[str, dict[str, int]]
"""The entries of one pattern: bits by principal and host. Never empty on any level."""


class Pattern(NamedTuple):
    """A name of resources, or the beginning of such names."""

    name: str
    is_prefix: bool


class ResourceAcls:
    """The entries about one type of resource."""

    def __init__(self) -> None:
        self._literal: dict[str, Grants] = {}
        self._prefixed: dict[str, Grants] = {}
        self._lengths: list[int] = []
        """Lengths of the existing prefixes, ascending."""
        self._prefixes_of_length: dict[int, int] = {}
        self._patterns_of: dict[str, dict[Pattern, None]] = {}
        """The patterns under which a principal has entries."""

    def set_bit(self, pattern: Pattern, principal: str, host: str, bit: int) -> None:
        """Add one entry, which must be new."""
        assert bit.bit_count() == 1, bit
        patterns = self._prefixed if pattern.is_prefix else self._literal
        grants = patterns.get(pattern.name)
        if grants is None:
            grants = patterns[pattern.name] = {}
            if pattern.is_prefix:
                self._count_prefix(len(pattern.name), 1)
        hosts = grants.setdefault(principal, {})
        if not hosts:
            self._patterns_of.setdefault(principal, {})[pattern] = None
        assert not hosts.get(host, 0) & bit, (pattern, principal, host, bit)
        hosts[host] = hosts.get(host, 0) | bit
        assert pattern in self._patterns_of[principal], (pattern, principal)

    def clear_bit(self, pattern: Pattern, principal: str, host: str, bit: int) -> None:
        """Remove one existing entry, and maps that become empty."""
        assert bit.bit_count() == 1, bit
        patterns = self._prefixed if pattern.is_prefix else self._literal
        grants = patterns[pattern.name]
        hosts = grants[principal]
        assert hosts[host] & bit, (pattern, principal, host, bit)
        hosts[host] ^= bit
        if hosts[host]:
            return
        del hosts[host]
        if hosts:
            return
        del grants[principal]
        assert pattern in self._patterns_of[principal], (pattern, principal)
        del self._patterns_of[principal][pattern]
        if not self._patterns_of[principal]:
            del self._patterns_of[principal]
        if grants:
            return
        del patterns[pattern.name]
        if pattern.is_prefix:
            self._count_prefix(len(pattern.name), -1)

    def bits(self, name: str, principal: str, host: str) -> int | None:
        """Return the bits of all entries that match a request, joined by OR.

        None if no pattern covers the name, for any principal.
        """
        assert host != WILDCARD, "who asks has an address"
        found: int | None = None
        for grants in self._covering(name):
            found = found or 0
            own = grants.get(principal)
            if own is not None:
                found |= _bits_for(own, host)
            everyone = grants.get(EVERYONE)
            if everyone is not None:
                found |= _bits_for(everyone, host)
        assert found is None or found >= 0, found
        return found

    def entries(
        self, name: str, principal: str, host: str
    ) -> Iterator[tuple[Pattern, str, str, int]]:
        """Yield pattern, principal and host of entries that match a request, and their bits."""
        assert host != WILDCARD, "who asks has an address"
        for pattern in self._patterns_covering(name):
            patterns = self._prefixed if pattern.is_prefix else self._literal
            for who in dict.fromkeys((principal, EVERYONE)):
                hosts = patterns[pattern.name].get(who, {})
                for at in (host, WILDCARD):
                    if at in hosts:
                        yield pattern, who, at, hosts[at]

    def _patterns_covering(self, name: str) -> Iterator[Pattern]:
        assert len(self._lengths) == len(self._prefixes_of_length)
        for literal in dict.fromkeys((name, WILDCARD)):
            if literal in self._literal:
                yield Pattern(literal, is_prefix=False)
        for length in self._lengths:
            if length <= len(name) and name[:length] in self._prefixed:
                yield Pattern(name[:length], is_prefix=True)

    def patterns(self, principal: str, host: str) -> Iterator[tuple[Pattern, int]]:
        """Every pattern with entries about a principal or everyone, and their bits."""
        assert host != WILDCARD, "who asks has an address"
        for who in dict.fromkeys((principal, EVERYONE)):
            for pattern in self._patterns_of.get(who, ()):
                patterns = self._prefixed if pattern.is_prefix else self._literal
                yield pattern, _bits_for(patterns[pattern.name][who], host)

    def _covering(self, name: str) -> Iterator[Grants]:
        """Every pattern that covers a name."""
        exact = self._literal.get(name)
        if exact is not None:
            yield exact
        wildcard = self._literal.get(WILDCARD)
        if wildcard is not None and wildcard is not exact:
            yield wildcard
        assert len(self._lengths) == len(self._prefixes_of_length)
        longest = bisect_right(self._lengths, len(name))
        for index in range(longest):
            prefixed = self._prefixed.get(name[: self._lengths[index]])
            if prefixed is not None:
                yield prefixed

    def _count_prefix(self, length: int, change: int) -> None:
        assert change in (-1, 1), change
        count = self._prefixes_of_length.get(length, 0)
        if count == 0:
            insort(self._lengths, length)
        count += change
        assert count >= 0, (length, change)
        self._prefixes_of_length[length] = count
        if count == 0:
            del self._prefixes_of_length[length]
            self._lengths.remove(length)
        assert len(self._lengths) == len(self._prefixes_of_length)


def _bits_for(hosts: Mapping[str, int], host: str) -> int:
    """Return the bits of the entries about a host and about all hosts."""
    assert hosts, "a principal without entries is forgotten"
    return hosts.get(host, 0) | hosts.get(WILDCARD, 0)

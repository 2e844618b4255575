"""A store as the settings name it: values only, so that reading settings imports nothing else."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from kraft_wire.frozen import frozen

__all__ = ["STORE_TYPES", "Store", "UnusableStore", "is_pem_type"]

STORE_TYPES: Final[Mapping[str, bool]] = {"JKS": False, "PKCS12": False, "PEM": True}
"""The types of `ssl.keystore.type`, and whether each is text."""


@frozen
class Store:
    """Certificates, or a key with its chain: by file, or as text in PEM form."""

    location: str | None = None
    text: str | None = field(default=None, repr=False)
    is_pem: bool = True
    """JKS and PKCS12 files are told apart by their content, as Java does."""
    password: str | None = field(default=None, repr=False)


class UnusableStore(ValueError):
    """A store that cannot be used; the reason is one line without a secret."""


def is_pem_type(name: str) -> bool | None:
    """Return whether a type is PEM, None if it is none; Java ignores the case of its own types."""
    return STORE_TYPES.get(name if name in STORE_TYPES or name.upper() == "PEM" else name.upper())

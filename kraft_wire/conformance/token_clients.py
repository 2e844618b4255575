"""Clients that ask for delegation tokens (KIP-48), for the cases about them."""

from kraft_wire.conformance.subject import Subject
from kraft_wire.conformance.verdict import NotSupported

__all__ = ["needs_no_login"]


def needs_no_login(broker: Subject) -> None:
    """Check that the connections have no login. Errors: NotSupported."""
    security = broker.target.security
    if security.credentials is not None or security.tls is not None:
        raise NotSupported("the listener knows its clients")

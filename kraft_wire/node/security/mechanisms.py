"""What a SASL mechanism is to a server: tokens in, tokens out, in the end a user or a refusal."""

from typing import Final, Protocol

__all__ = ["PLAIN", "SCRAM_MECHANISMS", "LoginRefused", "Mechanism"]

PLAIN: Final = "PLAIN"
SCRAM_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Names with the numbers that metadata records have for them (KIP-554)."""


class LoginRefused(Exception):
    """The client is not let in; the text is for the client, None where it is Kafka's usual one."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message)
        self.message = message


class Mechanism(Protocol):
    """One login by one mechanism."""

    user: str | None
    """Who has logged in, None until then."""

    def step(self, token: bytes) -> bytes:
        """Return what the client is answered. Errors: LoginRefused."""
        ...

"""A server's side of a SASL mechanism: tokens in, tokens out, then a user or a refusal."""

from typing import Final, Protocol

__all__ = ["OAUTHBEARER", "PLAIN", "SCRAM_MECHANISMS", "LoginRefused", "Mechanism"]

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SCRAM_MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Names with their numbers in metadata records (KIP-554)."""


class LoginRefused(Exception):
    """The login is refused; the text is for the client, None for Kafka's usual text.

    `reason` is for the log alone, where the text says too little or too much.
    """

    def __init__(self, message: str | None = None, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason


class Mechanism(Protocol):
    """One login by one mechanism."""

    user: str | None
    """The user that has logged in, None before."""
    by_token: bool
    """Whether the credential is a delegation token of that user."""
    expires_ms: int | None
    """When the credential ends, in milliseconds since 1970; None: never."""

    def step(self, token: bytes, wall_ms: int) -> bytes:
        """Return the answer to the client's token. Errors: LoginRefused."""
        ...

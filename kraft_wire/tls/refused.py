"""The refusal of a connection before its first request."""

__all__ = ["TransportRefused"]


class TransportRefused(OSError):
    """The peer violates the protocol; the text is for the log."""

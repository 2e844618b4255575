"""Why a connection ends before anything of it is a request."""

__all__ = ["TransportRefused"]


class TransportRefused(OSError):
    """The peer does not speak as it should; the text is for the log."""

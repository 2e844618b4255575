"""Log lines about requests whose version is refused by an answer: the connection stays open.

These are ApiVersions of an unknown version and Produce 0 to 2 (`decoding`). A client that repeats
such requests cannot fill the disk with log lines. Not here: versions that close the connection,
whose line is `rejected`.
"""

from kraft_wire.broker.log_line_limiter import LogLineLimiter
from kraft_wire.model import ReportEvent
from kraft_wire.node.outputs import Peer
from kraft_wire.node.requests.decoding import Answered, api_name

__all__ = ["VersionRefusals"]


class VersionRefusals:
    """Writes the lines of one node."""

    def __init__(self, report: ReportEvent) -> None:
        self._report = report
        self._limit = LogLineLimiter(self._suppressed)

    def note(self, peer: Peer, refusal: Answered, now_ms: int) -> None:
        """Write the line of a refusal unless its address and API had 10 in this second."""
        header = refusal.header
        api = api_name(header.api_key)
        if self._limit.may_write(peer.client_host, api, now_ms):
            self._report(
                "version_refused",
                client=f"{peer.client_host}:{peer.client_port}",
                listener=peer.listener,
                api=api,
                version=header.api_version,
                client_id=header.client_id or "-",
                reason="UNSUPPORTED_VERSION",
            )

    def tick(self, now_ms: int) -> None:
        """Report the number of lines that the last second lacks."""
        self._limit.tick(now_ms)

    def _suppressed(self, host: str, api: str, count: int) -> None:
        self._report("version_refused_suppressed", client=host, api=api, count=count)

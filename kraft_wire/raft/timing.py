"""The quorum's periods, in milliseconds: Kafka's keys and defaults, and values derived from them.

Not here: `controller.quorum.append.linger.ms`, because the host groups appends under one flush.
"""

from kraft_wire.frozen import frozen
from kraft_wire.model import RandomSource

__all__ = ["RaftTiming", "end_quorum_backoff_ms"]


@frozen
class RaftTiming:
    """`controller.quorum.*` of the configuration."""

    election_timeout_ms: int = 1_000
    """`controller.quorum.election.timeout.ms`: drawn again from [T, 2T) for each wait."""
    fetch_timeout_ms: int = 2_000
    """`controller.quorum.fetch.timeout.ms`: a follower's wait for its leader, without jitter."""
    election_backoff_max_ms: int = 1_000
    """`controller.quorum.election.backoff.max.ms`: of the last in a resigning leader's list."""
    request_timeout_ms: int = 2_000
    """`controller.quorum.request.timeout.ms`."""
    retry_backoff_ms: int = 20
    """`controller.quorum.retry.backoff.ms`: after a failed connection or answer."""
    fetch_max_wait_ms: int = 500
    """How long a leader may hold our fetch; fixed in Kafka."""
    fetch_max_bytes: int = 1_048_576
    """`controller.quorum.fetch.max.bytes` (KIP-1219)."""
    fetch_snapshot_max_bytes: int = 1_048_576
    """`controller.quorum.fetch.snapshot.max.bytes` (KIP-1219)."""
    caught_up_within_ms: int = 3_600_000
    """A replica is added as a voter only if it fetched this recently; fixed in Kafka."""
    observer_forgotten_ms: int = 300_000
    """How long a leader remembers a silent observer; fixed in Kafka."""

    @property
    def check_quorum_timeout_ms(self) -> int:
        """How long a leader leads without fetches of a majority: 1.5 fetch timeouts."""
        assert self.fetch_timeout_ms > 0, self.fetch_timeout_ms
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_quorum_pace_ms(self) -> int:
        """How often a leader sends BeginQuorumEpoch to voters that do not fetch."""
        assert self.fetch_timeout_ms > 0, self.fetch_timeout_ms
        return max(1, self.fetch_timeout_ms // 2)

    def draw_precedence_ms(self, random_source: RandomSource) -> int:
        """Return how long a replica lets a rival campaign first, up to a quarter of the timeout.

        It is long compared with a vote request, short compared with an election without a winner.
        """
        drawn = 1 + random_source.below(max(1, self.election_timeout_ms // 4))
        assert drawn > 0, drawn
        return drawn

    def draw_election_timeout_ms(self, random_source: RandomSource) -> int:
        """Return a random wait before an election, uniform in [T, 2T)."""
        base = max(1, self.election_timeout_ms)
        drawn = base + random_source.below(base)
        assert base <= drawn < 2 * base, drawn
        return drawn


def end_quorum_backoff_ms(position: int, successors: int, backoff_max_ms: int) -> int:
    """Return how long a voter waits after its leader resigned (KIP-595 EndQuorumEpoch).

    `position` is the voter's place in the list of preferred candidates, `successors` when it is
    not in the list. The first campaigns at once, the last waits longest, the waits double in
    between.
    """
    assert 0 <= position <= successors, (position, successors)
    if position == 0:
        return 0
    if position == successors:
        return backoff_max_ms
    base = backoff_max_ms >> (successors - 1)
    return min(backoff_max_ms, base << (position - 1))

"""A leader's state of one follower: where its log ends, and when it was last caught up.

KIP-16 for the time at which a follower counts as caught up; KIP-903 for the broker epoch of its
fetches. The fetch offset of a follower is the end of its log: records below it are in the
follower's log, and on its disk if the topic promises that.

Not here: which followers are in the ISR (`leadership`).
"""

from typing import Final

__all__ = ["NEVER_MS", "NO_BROKER_EPOCH", "FollowerState"]

NEVER_MS: Final = -(1 << 62)
"""A time before every other."""
NO_BROKER_EPOCH: Final = -1
"""The broker epoch of a fetch below version 15."""
_UNKNOWN: Final = -1


class FollowerState:
    """One follower, by its fetches in the present leader epoch.

    An offset of -1 is "no fetch yet". Offsets from an earlier epoch are dropped, because the
    follower may have followed another leader since then, and truncated its log.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_ms",
        "is_in_isr",
        "leader_end_at_fetch",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, caught_up_ms: int = NEVER_MS) -> None:
        """A member of the ISR counts as caught up when the leader's epoch begins; others do not."""
        self.broker_id = broker_id
        self.is_in_isr = False
        """Whether the committed ISR has it; also false for a removed replica."""
        self.log_end_offset = _UNKNOWN
        self.log_start_offset = _UNKNOWN
        self.leader_end_at_fetch = _UNKNOWN
        """The largest end of the leader's log at one of its fetches."""
        self.fetched_ms = NEVER_MS
        """Time of its last fetch."""
        self.caught_up_ms = caught_up_ms
        """The latest known time at which it had all records of the leader."""
        self.broker_epoch: int | None = None
        """Of its last fetch, NO_BROKER_EPOCH if the fetch had none; None before the first."""

    def fetched(
        self,
        fetch_offset: int,
        log_start_offset: int,
        leader_end_offset: int,
        broker_epoch: int,
        now_ms: int,
    ) -> None:
        """Take note of a fetch.

        One from the leader's end means that it has everything now; one from where the leader's
        log ended at its previous fetch, that it had everything then. Under a steady load it is
        always a little behind, and caught up all the same.
        """
        assert fetch_offset >= 0, fetch_offset
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.leader_end_at_fetch = max(self.leader_end_at_fetch, leader_end_offset)
        self.fetched_ms = now_ms
        self.broker_epoch = broker_epoch

    def still_has_everything(self, broker_epoch: int, now_ms: int) -> bool:
        """Take note of a fetch that is as the last one was, from the leader's end.

        Only of a member of the ISR: of others each fetch may be a reason to let them in.
        """
        if not self.is_in_isr or broker_epoch != self.broker_epoch:
            return False
        self.fetched_ms = self.caught_up_ms = now_ms
        return True

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_max_ms: int) -> bool:
        """Whether it has everything, or had at most `lag_max_ms` ago."""
        if self.log_end_offset == leader_end_offset:
            return True
        return now_ms - self.caught_up_ms <= lag_max_ms

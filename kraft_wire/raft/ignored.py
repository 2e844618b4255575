"""Why a message was ignored, refused or only half applied: a name and a counter for each reason."""

from enum import Enum

__all__ = ["Ignored", "IgnoredCounts"]


class Ignored(Enum):
    """A reason; the value is its text in a log line."""

    LATE_ANSWER = "the request is no longer pending"
    UNEXPECTED_KIND = "the message type is not expected here"
    TOP_LEVEL_ERROR = "the response has a top-level error"
    BAD_SHAPE = "the response lacks the metadata partition"
    STALE_EPOCH = "the response is of an older epoch"
    CONFLICTING_LEADER = "another leader is known for that epoch"
    NAMED_AS_LEADER = "the peer treats this replica as leader, which it is not"
    EPOCHS_EXHAUSTED = "no further epoch would remain for an election"
    PARTITION_ERROR = "the response has an error for the partition"
    ROLE_CHANGED = "this replica has left the role that sent the request"
    TRUNCATION_BELOW_HIGH_WATERMARK = "truncation refused below the high watermark"
    NOTHING_TO_TRUNCATE = "the log already ends at the truncation offset"
    SNAPSHOT_BELOW_HIGH_WATERMARK = "snapshot refused below the high watermark"
    SNAPSHOT_NOT_NEEDED = "the snapshot ends at the log end"
    MALFORMED_SNAPSHOT_ID = "the snapshot id is incomplete"
    OTHER_SNAPSHOT = "the chunk has another snapshot id or position"
    CHUNK_OUT_OF_RANGE = "the chunk is empty, or exceeds the snapshot's size"
    SNAPSHOT_GONE = "the leader no longer has the snapshot"
    SNAPSHOT_REFUSED = "the fetched snapshot is incomplete, or could not be written"
    HIGH_WATERMARK_FELL = "the leader's high watermark has decreased"
    FETCH_OFFSET_FELL = "a replica fetches below an offset that it had acknowledged"
    VERSION_WITHOUT_PRE_VOTE = "a voter does not support pre-votes"
    NOT_THE_LEADER = "only the leader handles this request"
    BROKEN_VOTER_RECORD = "a voter set in the log is empty or has a duplicate id"


class IgnoredCounts:
    """How often each reason was given."""

    def __init__(self) -> None:
        self._counts: dict[Ignored, int] = {}

    def count(self, reason: Ignored) -> None:
        """Note one more case."""
        self._counts[reason] = self._counts.get(reason, 0) + 1

    def __getitem__(self, reason: Ignored) -> int:
        return self._counts.get(reason, 0)

    def counts(self) -> dict[Ignored, int]:
        """Return the reasons that were given at least once, in order of their first time."""
        assert all(count > 0 for count in self._counts.values()), self._counts
        return dict(self._counts)

"""Why a message was ignored, refused or only half obeyed: a name and a counter for each reason."""

from enum import Enum

__all__ = ["Ignored", "IgnoredCounts"]


class Ignored(Enum):
    """A reason; the value is what a log line says."""

    LATE_ANSWER = "the question is no longer asked"
    UNEXPECTED_KIND = "the message is not of a kind that is expected here"
    TOP_LEVEL_ERROR = "the answer carries a top-level error"
    BAD_SHAPE = "the answer does not speak of the metadata partition"
    STALE_EPOCH = "the answer is of an older epoch"
    CONFLICTING_LEADER = "another leader is known for that epoch"
    NAMED_AS_LEADER = "a peer takes this replica for a leader that it is not"
    EPOCHS_EXHAUSTED = "the epoch leaves no room for another election"
    PARTITION_ERROR = "the answer carries an error for the partition"
    ROLE_CHANGED = "this replica is no longer in the role that asked"
    TRUNCATION_BELOW_HIGH_WATERMARK = "truncation refused below the high watermark"
    NOTHING_TO_TRUNCATE = "the log already ends where it should be cut"
    SNAPSHOT_BELOW_HIGH_WATERMARK = "snapshot refused below the high watermark"
    SNAPSHOT_NOT_NEEDED = "the snapshot ends where the log ends"
    MALFORMED_SNAPSHOT_ID = "half of the snapshot id is missing"
    OTHER_SNAPSHOT = "the chunk is of another snapshot or position"
    CHUNK_OUT_OF_RANGE = "the chunk is empty, or reaches beyond the snapshot's size"
    SNAPSHOT_GONE = "the leader no longer has the snapshot"
    SNAPSHOT_REFUSED = "what was fetched is no whole snapshot, or could not be written"
    HIGH_WATERMARK_FELL = "the leader's high watermark is below an earlier one"
    FETCH_OFFSET_FELL = "a replica fetches from below what it had acknowledged"
    VERSION_WITHOUT_PRE_VOTE = "a voter does not know pre-votes"
    NOT_THE_LEADER = "only a leader obeys this request"
    BROKEN_VOTER_RECORD = "a voter set from the log is empty or names an id twice"


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

"""How changes of partitions are treated where the makes do not treat them alike, and why.

After a clean stop a start reads little: an index or a snapshot of producers counts as it is, unless
it contradicts the log. After a kill it verifies the log from the recovery point on, which the last
segment is behind.
"""

from __future__ import annotations

from tests.apache.odd_directories.comparing import Outcome
from tests.apache.odd_directories.log_changes import S0, S9

__all__ = ["KILLED", "STOPPED", "expected"]

STOPPED, KILLED = "stopped", "killed"

_WHOLE = (
    # Index entries are verified against their batches; an index that lies is rebuilt.
    f"{S0}.index of noise",
    f"{S0}.index with noise behind",
    f"{S0}.timeindex missing",
    f"{S0}.timeindex empty",
    f"{S0}.timeindex cut within an entry",
    f"{S0}.timeindex with zeros behind",
    f"{S0}.timeindex of noise",
    f"{S0}.timeindex with noise behind",
    f"{S0}.timeindex of zeros",
    "time index of another segment",
    "time index of the future",
    "time index of the past",
    "first two segments merged",
    "swap of the first segment",
    "swap of the first two segments",
    "swap of the first two segments, one removed",
    "swap alone",
    "swap before a cleaned segment",
    # Apache Kafka sets the log aside as a stray one, and begins an empty one.
    "topic id missing",
    # In Apache Kafka's file the leader epochs begin at the log start, here at the first segment.
    "log start in the first segment",
    "log start in a batch",
)
# Apache Kafka lets the log end in the empty segment, and offsets jump.
_WHOLE_AFTER_A_KILL = ("empty segment behind a gap",)
_WHOLE_AFTER_A_STOP = (
    f"{S9}.index of noise",
    f"{S9}.index with noise behind",
    f"{S9}.timeindex missing",
    f"{S9}.timeindex empty",
    f"{S9}.timeindex cut within an entry",
    f"{S9}.timeindex with zeros behind",
    f"{S9}.timeindex of noise",
    f"{S9}.timeindex with noise behind",
    f"{S9}.timeindex of zeros",
    "time index of the past at the end",
    "time index beyond the last offset",
    "swap of the last segment",
    "swap of the last segment alone",
    # Apache Kafka takes an index with a part of an entry, or with entries twice, as it is.
    "txnindex cut",
    "txnindex with a part behind",
    "txnindex with its entries twice",
    # Apache Kafka begins without producers, and appends what a producer repeats.
    "all snapshots missing",
)

# Apache Kafka cuts the log, serves it with a hole, or returns bytes that no client can read.
_REFUSED = (
    "zeros behind an earlier segment",
    "noise behind an earlier segment",
    "earlier segment cut within a batch",
    "byte changed in the first segment",
    "last segment empty",
    "last segment missing",
    "log of the last segment missing",
    "all segments missing",
    "all files but the small ones missing",
    "all files missing",
    "base offset of the last batch too low",
    "swap with a batch cut",
    "swap with a byte changed",
    "swap with a part of the first segment",
    "recovery point beyond the end",
    # Files without a checksum: what is not in Kafka's form is damage.
    "epochs: one twice",
    "epochs: one at two offsets",
    "epochs: two at one offset",
    "epochs: other order",
    "epochs: offsets go down",
    "epochs: no last newline",
    "epochs: lines of Windows",
    "epochs: tabs",
    "epochs: leading zeros",
    "epochs: version without a count",
    "topic id with lines of Windows",
    "topic id with a further line",
)
_REFUSED_AFTER_A_STOP = (
    "few zeros behind the last batch",
    "noise behind the last batch",
    "last batch cut",
    "last batch cut within its head",
    "last batch missing",
    "length of the last batch too large",
    "magic of the last batch wrong",
    "byte changed in the last batch",
)
# A batch with a right CRC, out of its place: no torn write leaves that.
_REFUSED_AFTER_A_KILL = (
    "last batch twice",
    "base offset of the last batch too high",
    "epoch of the last batch too low",
    "epoch of the last batch higher",
    "byte changed in the middle of the last segment",
)

_UNLIKE = {
    # The first record of a time is looked for behind an empty segment, and at the log start.
    "earlier segment empty": (STOPPED, KILLED),
    "empty swap": (STOPPED, KILLED),
    "middle segment empty": (STOPPED, KILLED),
    "log start at a segment": (STOPPED, KILLED),
    "log start in the last segment": (STOPPED, KILLED),
    # Producers without records are remembered, as before the stop.
    "log start in the open transaction": (STOPPED, KILLED),
    # The leader epochs begin at the first segment in our file.
    "first segment missing": (STOPPED, KILLED),
    "log of the first segment missing": (STOPPED, KILLED),
    "cleaned segment alone": (STOPPED, KILLED),
    # The log ends behind the batch in Apache Kafka, and before it here.
    "magic of the last batch wrong": (KILLED,),
    # An open transaction begins at another offset.
    "base offset of the last batch too high": (STOPPED,),
}


def expected(name: str, end: str) -> Outcome:
    """Return how a change is treated after a node has ended in a way."""
    if end in _UNLIKE.get(name, ()):
        return Outcome.OTHER
    if name in (*_REFUSED, *(_REFUSED_AFTER_A_STOP if end == STOPPED else _REFUSED_AFTER_A_KILL)):
        return Outcome.REFUSED
    if name in (*_WHOLE, *(_WHOLE_AFTER_A_STOP if end == STOPPED else _WHOLE_AFTER_A_KILL)):
        return Outcome.OURS_IS_WHOLE
    return Outcome.SAME

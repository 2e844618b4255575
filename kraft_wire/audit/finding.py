"""One finding of an audit, in the form in which it is printed and stored."""

from dataclasses import asdict, dataclass
from typing import Final, Literal

__all__ = ["CHECKS", "NOWHERE", "NO_OFFSET", "Finding", "Severity"]

Severity = Literal["error", "warn", "info"]
NO_OFFSET: Final = -1
NOWHERE: Final = -1
"""`position` of a finding without a single place in a file."""

CHECKS: Final = (
    "crc",
    "gap",
    "epoch",
    "log-matching",
    "divergence",
    "below-high-watermark",
    "acknowledged",
    "snapshot",
    "index",
    "producer",
    "marker",
    "hanging",
)
"""Every check that an audit decides."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Which check does not hold, and where; fields as in the JSON of `audit`."""

    check: str
    severity: Severity
    node: str
    """`node.id` as text; several, joined by commas, where no majority names the odd one."""
    topic: str
    """Empty, and the partition -1, where the finding is about a file of a whole directory."""
    partition: int
    offset: int
    """-1 if unknown."""
    file: str
    position: int
    """In the file; -1 where the finding is about no single place in it."""
    detail: str

    @property
    def nodes(self) -> list[str]:
        """The nodes that are named."""
        return self.node.split(",")

    @property
    def place(self) -> str:
        """Topic and partition as the name of a directory."""
        return f"{self.topic}-{self.partition}" if self.topic else ""

    def to_json(self) -> dict[str, str | int]:
        """Return the finding as the object that is printed."""
        return asdict(self)

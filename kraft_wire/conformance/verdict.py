"""The result of one case in one version, and the exchange that it is based on."""

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "ConnectionClosed",
    "Difference",
    "Exchange",
    "Mismatch",
    "NotSupported",
    "NothingYet",
    "Outcome",
    "Verdict",
]


class Verdict(StrEnum):
    """What the broker does: the expected, something else, or it does not serve this at all."""

    PASSED = "passed"
    FAILED = "failed"
    DIFFERS = "differs"
    """The case passes; the broker differs from the release in something that no KIP promises."""
    NOT_SUPPORTED = "not supported"
    ERROR = "error"
    """The case could not be carried out: connection refused, setup failed."""

    @property
    def is_finding(self) -> bool:
        """Return whether a report shows the row in full."""
        return self in (Verdict.FAILED, Verdict.DIFFERS, Verdict.ERROR)


class Mismatch(Exception):
    """The broker did something else than expected.

    `path` names the field of the last response as the schema spells it in snake_case, with
    indices: `responses[0].partition_responses[0].error_code`. It is empty if no field is at fault:
    a closed connection, a missing response.
    """

    def __init__(self, expected: str, seen: str, path: str = "") -> None:
        super().__init__(f"expected {expected}, got {seen}" if not path else f"{path}: {seen}")
        self.expected = expected
        self.seen = seen
        self.path = path


class Difference(Mismatch):
    """The broker differs from the release in something that no KIP promises.

    Fields that a case does not check, forms of ids, and errors by which the release fails
    internally are such. A client of any Kafka cannot count on them.
    """


class ConnectionClosed(Mismatch):
    """The broker closed the connection where a response was expected."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected, "the connection was closed")


class NothingYet(Mismatch):
    """The response lacks what is expected, and the broker may only be late with it.

    The case runs again before it counts as failed.
    """


class NotSupported(Exception):
    """The broker reports that it does not serve a request of the case."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response as frames, each with its four bytes of length."""

    api_key: int
    version: int
    request: bytes
    response: bytes | None
    """None: no response came."""
    is_preparation: bool = False
    """Whether it only prepares the case."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the report."""

    name: str
    """`api.case`, for example `produce.unknown_partition`."""
    version: int
    verdict: Verdict
    seconds: float
    expected: str = ""
    seen: str = ""
    path: str = ""
    exchanges: tuple[Exchange, ...] = field(default=(), repr=False)
    """All exchanges, the oldest first; those of a passed row only if requested."""

    @property
    def row(self) -> str:
        """Name and version as `--only` takes them: `produce.unknown_partition/9`."""
        return f"{self.name}/{self.version}"

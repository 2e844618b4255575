"""The forms of a node's metrics; the process exposes them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Buckets", "Family", "Histogram", "LabelledFamily"]


class Family(NamedTuple):
    """One metric with a value per label value, or a single one under the empty label."""

    name: str
    is_counter: bool
    documentation: str
    label: str
    values: Mapping[str, float]


class LabelledFamily(NamedTuple):
    """One metric with several labels: a value for each tuple of theirs."""

    name: str
    is_counter: bool
    documentation: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]


class Buckets(NamedTuple):
    """One histogram: the number of values in each bucket, and their sum."""

    counts: Sequence[int]
    """One more than the bounds: the last bucket has no upper bound."""
    total: float


class Histogram(NamedTuple):
    """One metric whose values are counted in buckets, for each value of a label."""

    name: str
    documentation: str
    label: str
    bounds: Sequence[float]
    """Upper bounds, inclusive."""
    values: Mapping[str, Buckets]

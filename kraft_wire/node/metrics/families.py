"""The forms in which metrics leave the node; who shows them is the process's affair."""

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
    """One histogram: how many values fell into each bucket, and their sum."""

    counts: Sequence[int]
    """One more than there are bounds: the last bucket has no upper one."""
    total: float


class Histogram(NamedTuple):
    """One metric whose values are counted in buckets, for each value of a label."""

    name: str
    documentation: str
    label: str
    bounds: Sequence[float]
    """Upper bounds, inclusive."""
    values: Mapping[str, Buckets]

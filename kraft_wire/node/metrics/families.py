"""The form in which metrics leave the node; who shows them is the process's affair."""

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Family"]


class Family(NamedTuple):
    """One metric with a value per label value, or a single one under the empty label."""

    name: str
    is_counter: bool
    documentation: str
    label: str
    values: Mapping[str, float]

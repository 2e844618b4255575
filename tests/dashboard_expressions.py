"""The expressions of docs/dashboard.json, evaluated over scrapes without a Prometheus.

Only what the dashboard uses: `sum`, `max` and `min` by labels, `rate`, `histogram_quantile`. It
draws the picture; Prometheus itself evaluates the dashboard of an operator.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Final, NamedTuple

__all__ = ["Scrape", "evaluate"]

_FORM: Final = re.compile(
    r"(?:histogram_quantile\((?P<quantile>[\d.]+), )?"
    r"(?P<function>sum|max|min)(?: by \((?P<by>[\w, ]+)\) )?\("
    r"(?P<rate>rate\()?(?P<metric>\w+)(?:\{[^}]*\})?(?:\[1m\]\))?\)\)?"
)
_RATE_SECONDS: Final = 10.0
"""The window of a rate: a run of a minute has no room for the dashboard's."""

Series = tuple[tuple[str, str], ...]
"""Labels of a sample, sorted."""


class Scrape(NamedTuple):
    """All samples of all nodes at one time."""

    seconds: float
    samples: Mapping[str, Mapping[Series, float]]
    """By name of the metric and labels, `instance` among them."""


def evaluate(expression: str, scrapes: Sequence[Scrape]) -> dict[Series, list[tuple[float, float]]]:
    """Return a curve of (seconds, value) for each group of the expression's labels."""
    form = _FORM.fullmatch(expression)
    assert form is not None, expression
    by = [each.strip() for each in (form["by"] or "").split(",") if each.strip()]
    curves: defaultdict[Series, list[tuple[float, float]]] = defaultdict(list)
    for at, scrape in enumerate(scrapes):
        values = scrape.samples.get(form["metric"], {})
        if form["rate"]:
            values = _rates(form["metric"], scrapes, at)
        groups = _grouped(values, by, form["function"])
        if form["quantile"]:
            groups = _quantiles(groups, float(form["quantile"]))
        for labels, value in groups.items():
            if not isnan(value):
                curves[labels].append((scrape.seconds, value))
    return dict(curves)


def _rates(metric: str, scrapes: Sequence[Scrape], at: int) -> dict[Series, float]:
    now = scrapes[at]
    before = next(each for each in scrapes if now.seconds - each.seconds <= _RATE_SECONDS)
    seconds = now.seconds - before.seconds
    old = before.samples.get(metric, {})
    rates = {}
    for labels, value in now.samples.get(metric, {}).items():
        if seconds and labels in old:
            # A counter that is lower than before began anew.
            rates[labels] = (value - old[labels] if value >= old[labels] else value) / seconds
    return rates


def _grouped(values: Mapping[Series, float], by: list[str], function: str) -> dict[Series, float]:
    groups: defaultdict[Series, list[float]] = defaultdict(list)
    for labels, value in values.items():
        groups[tuple(each for each in labels if each[0] in by)].append(value)
    do = {"sum": sum, "max": max, "min": min}[function]
    return {labels: do(found) for labels, found in groups.items()}


def _quantiles(groups: Mapping[Series, float], quantile: float) -> dict[Series, float]:
    """Return the quantile of each histogram, linear within its bucket, as Prometheus has it."""
    histograms: defaultdict[Series, list[tuple[float, float]]] = defaultdict(list)
    for labels, count in groups.items():
        rest = tuple(each for each in labels if each[0] != "le")
        histograms[rest].append((float(dict(labels)["le"]), count))
    found = {}
    for labels, buckets in histograms.items():
        buckets.sort()
        wanted = quantile * buckets[-1][1]
        low, below = 0.0, 0.0
        for bound, count in buckets:
            if count >= wanted > 0:
                inner = (wanted - below) / (count - below) if count > below else 1.0
                found[labels] = low if bound == float("inf") else low + (bound - low) * inner
                break
            low, below = bound, count
    return found

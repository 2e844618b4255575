"""One run over all topics that finds what the regular expressions of a group match.

Off the path of requests: a timer does a slice of the work at a time, so that no request waits for
many topics. A topic that the member may not describe, whose heartbeat asked for the run, is left
out.
"""

from collections.abc import Callable
from itertools import islice
from typing import Final

from kraft_wire.broker.groups.consumer.regex_engine import matcher_of
from kraft_wire.broker.groups.consumer.results import ResolvedRegex
from kraft_wire.broker.groups.java_collections import JavaHashMap, java_hash_set
from kraft_wire.broker.groups.refusal import Refusal
from kraft_wire.metadata.image import MetadataImage

__all__ = ["MayDescribe", "RegexEvaluation"]

MayDescribe = Callable[[str], bool]
"""Whether a member may describe a topic."""

_MATCHES_MAX: Final = 5_000
"""Names that are compared in one slice of a run, a few milliseconds of work."""


class RegexEvaluation:
    """The expressions of a group, and the topics that were found so far."""

    __slots__ = ("_image", "_matched", "_matchers", "_may_describe", "_names", "_started_ms")

    def __init__(
        self, regexes: tuple[str, ...], image: MetadataImage, may_describe: MayDescribe | None
    ) -> None:
        self._image = image
        self._may_describe = may_describe
        self._names = iter(image.topics_by_name)
        self._matched: JavaHashMap[str, list[str]] = JavaHashMap(len(regexes))
        self._matchers: dict[str, Callable[[str], bool]] = {}
        self._started_ms: int | None = None
        for regex in java_hash_set(regexes, len(regexes)):
            self._matched[regex] = []
            matcher = matcher_of(regex)
            if not isinstance(matcher, Refusal):
                self._matchers[regex] = matcher

    def advance(self, wall_ms: int) -> bool:
        """Do one slice; whether all topics were compared."""
        if self._started_ms is None:
            self._started_ms = wall_ms
        names_max = max(1, _MATCHES_MAX // max(1, len(self._matchers)))
        names = list(islice(self._names, names_max))
        for regex, matcher in self._matchers.items():
            found = [name for name in names if matcher(name) and self._is_shown(name)]
            self._matched[regex].extend(found)
        return len(names) < names_max

    def results(self) -> JavaHashMap[str, ResolvedRegex]:
        """Return the topics of each expression, once all were compared."""
        assert self._started_ms is not None, "the run has begun"
        found: JavaHashMap[str, ResolvedRegex] = JavaHashMap(len(self._matched))
        for regex, topics in self._matched.items():
            found[regex] = ResolvedRegex(tuple(topics), self._image.offset, self._started_ms)
        return found

    def _is_shown(self, name: str) -> bool:
        return self._may_describe is None or self._may_describe(name)

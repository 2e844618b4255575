"""The table of probes: a function, the API it asks, and the versions it is asked in.

A probe talks to one `Side` and is run against both. What it asks is compared in order, so it must
not decide by an answer what to ask next, except where both brokers give the same.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kraft_wire.apis.registry import advertised
from kraft_wire.wire.message import Message
from tests.apache.differential.comparing import differences
from tests.apache.differential.side import Side

__all__ = ["PROBES", "Ask", "Probe", "disagreements", "probe"]

Ask = Callable[[Side, int], None]
LINES_MAX = 40
LINE_CHARACTERS_MAX = 600


class Probe(NamedTuple):
    """One function in one version."""

    api: str
    version: int
    ask: Ask

    @property
    def id(self) -> str:
        """How the test is called."""
        return f"{self.api}-v{self.version}-{self.ask.__name__}"


PROBES: list[Probe] = []


def probe(request: type[Message], versions: Iterable[int] = ()) -> Callable[[Ask], Ask]:
    """Put a function into the table, for all versions that we serve or for those that are named."""

    def enter(ask: Ask) -> Ask:
        first, last = advertised()[request.API_KEY]
        served = range(max(first, request.MIN_VERSION), last + 1)
        name = request.NAME.removesuffix("Request")
        PROBES.extend(Probe(name, version, ask) for version in (versions or served))
        return ask

    return enter


def disagreements(probe: Probe, theirs: Side, ours: Side) -> list[str]:
    """Run a probe against both brokers and return a line per difference."""
    for side in (theirs, ours):
        side.begin()
        probe.ask(side, probe.version)
    lines = [
        f"{number} {their.question}{line}"
        for number, (their, our) in enumerate(zip(theirs.transcript, ours.transcript, strict=True))
        for line in differences(their.answer, our.answer)
    ]
    return [line[:LINE_CHARACTERS_MAX] for line in lines[:LINES_MAX]]

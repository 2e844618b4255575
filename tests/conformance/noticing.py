"""The fields of responses whose change makes a case fail.

A case that lost one of its checks still passes every correct broker, so its checks are judged by
wrong responses: the case runs against its story (`stories.py`) again and again, each time with one
field of one response changed. `noticed.json` lists the fields whose change each case reports;
`python -m tests.conformance.noticing` writes the list anew.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from kraft_wire.conformance.verdict import Mismatch, NotSupported
from kraft_wire.wire.generated.registry import response_class
from kraft_wire.wire.header import encode_response_header, parse_response_header
from kraft_wire.wire.message import Struct, UnencodableMessage
from kraft_wire.wire.records.corruption import CorruptRecordBatch
from tests.conformance.stories import DRAWN, Received, Recording, Silence, Story, kept_stories

__all__ = ["NOTICED", "judged_responses", "newest_stories", "noticed_by"]

NOTICED = Path(__file__).parent / "noticed.json"
FRAMES_MAX = 3
"""Of each case, its last responses to the API that it judges."""

_OBJECTIONS = (
    *(Mismatch, NotSupported, CorruptRecordBatch),
    *(LookupError, ValueError, TypeError, AttributeError),
)


def newest_stories() -> dict[str, Story]:
    """Return the story of each case in its last version; drawn requests check nothing."""
    stories = {story.row.case.name: story for story in kept_stories()}
    return {name: each for name, each in stories.items() if not name.startswith(f"{DRAWN}.")}


def judged_responses(story: Story) -> list[tuple[int, int]]:
    """Return where the responses to the API of a case are: connection, and place in it."""
    return [
        (number, at)
        for number, kept in enumerate(story.connections)
        for at, each in enumerate(kept)
        if isinstance(each, Received) and each.api_key == story.row.case.api_key and each.frame
    ]


def noticed_by(story: Story) -> list[str]:
    """Return the fields whose change a case reports: how far from its end, and the path."""
    found = []
    places = judged_responses(story)
    for back, (number, at) in enumerate(reversed(places[-FRAMES_MAX:]), 1):
        heard = story.connections[number][at]
        assert isinstance(heard, Received)
        for path, frame in changed_frames(heard):
            changed = Received(heard.api_key, heard.version, frame)
            if is_noticed(story, number, at, changed):
                found.append(f"-{back} {path}")
    for number, kept in enumerate(story.connections):
        for at, event in enumerate(kept):
            if event == Silence(is_silent=True):
                noticed = is_noticed(story, number, at, Silence(is_silent=False))
                found += [f"{number} silence"] * noticed
    return sorted(found)


def is_noticed(story: Story, number: int, at: int, changed: Received | Silence) -> bool:
    """Run a case while one event of its story is another one; return whether it fails."""
    connections: list[Recording] = [list(kept) for kept in story.connections]
    connections[number][at] = changed
    try:
        story.play_with(connections)
    except _OBJECTIONS:
        return True
    return False


def changed_frames(heard: Received) -> Iterator[tuple[str, bytes]]:
    """Yield a response frame again and again, each time with another field changed everywhere."""
    assert heard.frame is not None
    kind = response_class(heard.api_key)
    correlation_id, at = parse_response_header(heard.frame, heard.api_key, heard.version)
    if heard.version < kind.MIN_VERSION:
        return  # a refusal of a version that has no class
    message, end = kind.decode(heard.frame, heard.version, at)
    assert end == len(heard.frame), kind
    head = encode_response_header(heard.api_key, heard.version, correlation_id)
    for names in _paths([message]):
        changed, _ = kind.decode(heard.frame, heard.version, at)
        _change([changed], names)
        try:
            body = changed.encode(heard.version)
        except UnencodableMessage:  # the version has no such field
            continue
        if head + body != heard.frame:
            yield ".".join(names), head + body


def _paths(alike: Sequence[Struct]) -> Iterator[tuple[str, ...]]:
    """Yield the names that lead to each field of some structs of one kind."""
    for name in alike[0].__slots__ if alike else ():
        if not name.startswith("_") and name != "throttle_time_ms":
            yield (name,)
            for rest in _paths(_below(alike, name)):
                yield (name, *rest)


def _below(alike: Sequence[Struct], name: str) -> list[Struct]:
    values = [getattr(each, name) for each in alike]
    flat = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [one for one in flat if isinstance(one, Struct)]


def _change(alike: Sequence[Struct], names: tuple[str, ...]) -> None:
    name, *rest = names
    if rest:
        _change(_below(alike, name), tuple(rest))
    else:
        for each in alike:
            setattr(each, name, _other(getattr(each, name)))


def _other(now: object) -> object:
    match now:
        case bool():
            return not now
        case int():
            return now + 1
        case str():
            return f"{now}x"
        case bytes() | memoryview() if now:
            return bytes(now)[:-1] + bytes([now[-1] ^ 1])
        case list():
            return []
    return now


def main() -> None:
    """Write the list."""
    found = {name: noticed_by(story) for name, story in newest_stories().items()}
    NOTICED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

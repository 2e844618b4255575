"""Splits a request into served and refused parts; merges the answers of both."""

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from kraft_wire.apis.rights import Need
from kraft_wire.broker.context import Silence
from kraft_wire.node.authorization.asker import Asked, Finish, Passed, Verdict
from kraft_wire.wire.message import Message

__all__ = ["by_id_or_name", "finishing", "split", "with_refused"]

PartT = TypeVar("PartT")
MessageT = TypeVar("MessageT", bound=Message)


def split(
    asked: Asked,
    need: Need,
    parts: Sequence[PartT],
    name_of: Callable[[PartT], str | None],
    *,
    is_silent: bool = False,
) -> tuple[list[PartT], list[PartT]]:
    """Return the parts that may be served and those that may not, each in the request's order.

    A part without a name is served: its topic does not exist, and the handler refuses it.
    """
    names = [name_of(part) for part in parts]
    allowed = asked.asker.allowed(
        need, [name for name in names if name is not None], is_silent=is_silent
    )
    served: list[PartT] = []
    refused: list[PartT] = []
    for part, name in zip(parts, names, strict=True):
        (served if name is None or allowed[name] else refused).append(part)
    return served, refused


def by_id_or_name(asked: Asked, ids_from: int) -> Callable[[object], str | None]:
    """Return the key of a part of a request: from a version on its topic's id, else its name."""
    if asked.context.api_version < ids_from:
        return lambda part: cast("str | None", getattr(part, "name"))  # noqa: B009  # as below

    def name_of(part: object) -> str | None:
        topic = asked.image.topic_by_id(getattr(part, "topic_id"))  # noqa: B009  # of several classes
        return None if topic is None else topic.name

    return name_of


def finishing(kind: type[MessageT], change: Callable[[MessageT], Message]) -> Finish:
    """Return a function that changes answers of a class; others and no answer stay unchanged."""

    def finish(answer: Message | Silence) -> Message | Silence:
        return change(answer) if isinstance(answer, kind) else answer

    return finish


def with_refused(
    request: Message,
    kind: type[Message],
    field: str,
    refused: Sequence[object],
    served: Sequence[object],
    *,
    first: bool = False,
) -> Verdict:
    """Pass the served parts of a request; add the answers of the refused ones to a list of its.

    `field` is the list in an answer of the class `kind`. The refused parts are last, or `first`. A
    request without served parts is answered at once.
    """
    if not refused:
        return Passed(request)

    def change(answer: Message) -> Message:
        answers = getattr(answer, field)
        setattr(answer, field, [*refused, *answers] if first else [*answers, *refused])
        return answer

    return Passed(request, finishing(kind, change)) if served else change(kind())

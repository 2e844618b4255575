"""Answers of the two APIs that alter settings: each resource is changed or refused on its own.

KIP-133 (AlterConfigs) and KIP-339 (IncrementalAlterConfigs), whose messages have the same fields in
different classes. Not here: what a change means (`config_changes`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from kraft_wire.controller.refusal import Refusal
from kraft_wire.metadata.records import VersionedRecord
from kraft_wire.wire.generated.error_code import ErrorCode

__all__ = ["change_each", "refuse_each"]


class NamedResource(Protocol):
    """A resource as either request names it."""

    resource_type: int
    resource_name: str


ResourceT = TypeVar("ResourceT", bound=NamedResource)
AnswerT = TypeVar("AnswerT", covariant=True)

_TYPES: Final = frozenset({2, 4, 8, 16, 32})
"""Types of resources: topic, broker, a broker's log levels, client metrics, group."""


class AnswerClass(Protocol[AnswerT]):
    """The answer for one resource, in either response's class."""

    def __call__(
        self, *, error_code: int, error_message: str | None, resource_type: int, resource_name: str
    ) -> AnswerT: ...


def _repeated(resources: Sequence[NamedResource]) -> set[tuple[int, str]]:
    assert len(resources) > 1, "one cannot be repeated"
    named = Counter((each.resource_type, each.resource_name) for each in resources)
    return {key for key, times in named.items() if times > 1}


def change_each(
    resources: Sequence[ResourceT],
    changes_of: Callable[[ResourceT], list[VersionedRecord]],
    answer: AnswerClass[AnswerT],
    *,
    is_direct: bool,
) -> tuple[list[AnswerT], list[VersionedRecord]]:
    """Return an answer for each resource, and the records of those that are changed.

    A controller that is asked directly answers a repeated resource once. Errors per resource, first
    match wins: UNSUPPORTED_VERSION (unknown type, if the request is direct), INVALID_REQUEST (named
    twice), those that `changes_of` raises.
    """
    repeated = _repeated(resources) if len(resources) > 1 else ()
    records: list[VersionedRecord] = []
    at_once: dict[int | tuple[int, str], AnswerT] = {}
    answers: list[AnswerT] = []
    for number, each in enumerate(resources):
        key = each.resource_type, each.resource_name
        if is_direct and each.resource_type not in _TYPES:
            words = f"Unknown resource type {each.resource_type}."
            at_once[number] = _answer(each, ErrorCode.UNSUPPORTED_VERSION, words, answer)
            continue
        if is_direct and key in repeated:
            words = "Duplicate resource."
            at_once[key] = _answer(each, ErrorCode.INVALID_REQUEST, words, answer)
            continue
        error, message = ErrorCode.NONE, None
        try:
            if key in repeated:
                words = "Each resource must appear at most once."
                raise Refusal(ErrorCode.INVALID_REQUEST, words)
            records += changes_of(each)
        except Refusal as refusal:
            error, message = refusal.error, refusal.message
        answers.append(_answer(each, error, message, answer))
    assert len(at_once) + len(answers) <= len(resources)
    return [*at_once.values(), *answers], records


def refuse_each(
    resources: Sequence[NamedResource],
    error: ErrorCode,
    message: str | None,
    answer: AnswerClass[AnswerT],
) -> list[AnswerT]:
    """Return the answers of a request that is refused as a whole."""
    assert error is not ErrorCode.NONE
    return [_answer(each, error, message, answer) for each in resources]


def _answer(
    resource: NamedResource, error: ErrorCode, message: str | None, answer: AnswerClass[AnswerT]
) -> AnswerT:
    assert error is not ErrorCode.NONE or message is None, message
    return answer(
        error_code=error,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )

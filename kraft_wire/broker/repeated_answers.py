"""Answers that every client gets, encoded once instead of once a request.

Such an answer depends on the version of the request and on some state of the broker. The state is
compared by value on every request, so that no change of it can be missed.
"""

from collections.abc import Callable

from kraft_wire.wire.message import Message

__all__ = ["EncodedMessage", "RepeatedAnswers"]


class EncodedMessage(Message):
    """A message of which only the bytes in one version are kept."""

    __slots__ = ("_body", "_version")

    def __init__(self, message: Message, version: int) -> None:
        """Encode a message; raises UnencodableMessage."""
        self._body = message.encode(version)
        self._version = version

    def encode(self, version: int) -> bytes:
        """Return the bytes, which are those of one version."""
        assert version == self._version, (version, self._version)
        return self._body


class RepeatedAnswers:
    """The answers to one API in the present state, by version."""

    __slots__ = ("_answers", "_state")

    def __init__(self) -> None:
        self._state: object = None
        self._answers: dict[int, EncodedMessage] = {}

    def answer(self, version: int, state: object, make: Callable[[], Message]) -> EncodedMessage:
        """Return the answer in a version; `make` makes it when it is not known in this state.

        `state` is compared with that of the last request by `==`: its parts must not be changed in
        place.
        """
        if state != self._state:
            self._state = state
            self._answers.clear()
        answer = self._answers.get(version)
        if answer is None:
            answer = self._answers[version] = EncodedMessage(make(), version)
        return answer

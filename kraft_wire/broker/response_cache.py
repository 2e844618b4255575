"""Caches answers that many clients get: encoded once instead of for each request.

Such an answer depends on the request and on some state of the broker. The state is compared on
every request, so that no change of it can be missed.
"""

from collections.abc import Callable, Hashable
from typing import Final

from kraft_wire.metadata.image import MetadataImage
from kraft_wire.wire.message import Message

__all__ = ["AnswersOfImage", "EncodedMessage", "NoAnswersOfImage", "ResponseCache"]


class EncodedMessage(Message):
    """A message that keeps only its bytes in one version."""

    __slots__ = ("_body", "_version")

    def __init__(self, message: Message, version: int) -> None:
        """Encode a message; raises UnencodableMessage."""
        self._body = message.encode(version)
        self._version = version

    def encode(self, version: int) -> bytes:
        """Return the bytes of its one version."""
        assert version == self._version, (version, self._version)
        return self._body


class ResponseCache:
    """The answers to one API in the present state, by version."""

    __slots__ = ("_answers", "_state")

    def __init__(self) -> None:
        self._state: object = None
        self._answers: dict[int, EncodedMessage] = {}

    def answer(self, version: int, state: object, make: Callable[[], Message]) -> EncodedMessage:
        """Return the answer in a version; `make` builds it if this state has none yet.

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


class AnswersOfImage:
    """The newest answers that depend on their requests and on the present image alone."""

    BYTES_MAX: Final = 1 << 20
    """Of all answers together; a larger one is made for each request."""

    __slots__ = ("_answers", "_image", "size_bytes")

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._answers: dict[Hashable, EncodedMessage] = {}
        self.size_bytes = 0

    def find(self, image: MetadataImage, request: Hashable) -> EncodedMessage | None:
        """Return the answer to a request; `request` is everything that it depends on.

        Images are never changed, so it is enough to ask whether this is the same one.
        """
        if image is not self._image:
            self._image = image
            self._forget()
        return self._answers.get(request)

    def keep(self, request: Hashable, answer: Message, version: int) -> EncodedMessage:
        """Keep the answer to a request that was not found."""
        encoded = EncodedMessage(answer, version)
        size_bytes = len(encoded.encode(version))
        if self.size_bytes + size_bytes > self.BYTES_MAX:
            self._forget()
        if size_bytes <= self.BYTES_MAX:
            self._answers[request] = encoded
            self.size_bytes += size_bytes
        return encoded

    def _forget(self) -> None:
        self._answers.clear()
        self.size_bytes = 0


class NoAnswersOfImage:
    """Keeps nothing: with an authorizer, answers depend on the requester."""

    __slots__ = ()

    def find(self, image: MetadataImage, request: Hashable) -> None:
        """Find nothing."""

    def keep(self, request: Hashable, answer: Message, version: int) -> Message:
        """Return the answer itself, so that it can be changed for the requester."""
        return answer

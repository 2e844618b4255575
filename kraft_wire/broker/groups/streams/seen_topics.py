"""The topics of a group when its metadata hash was last compared."""

from collections.abc import Iterable

from kraft_wire.metadata.image import MetadataImage, TopicImage

__all__ = ["SeenTopics"]


class SeenTopics:
    """Tells whether topics may have changed since then; before the first time they may have."""

    __slots__ = ("_image", "_topics")

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._topics: dict[str, TopicImage | None] = {}

    def may_differ(self, image: MetadataImage) -> bool:
        """Whether a topic of the group may have changed."""
        if self._image is None:
            return True
        if image is self._image:
            return False
        return any(image.topic(name) is not seen for name, seen in self._topics.items())

    def note(self, names: Iterable[str], image: MetadataImage) -> None:
        """Note that the group has the hash of these topics in an image."""
        if image is not self._image:
            self._image = image
            self._topics = {name: image.topic(name) for name in names}

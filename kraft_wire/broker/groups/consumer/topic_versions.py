"""The version of the metadata in which topics were last created."""

from kraft_wire.metadata.image import MetadataImage

__all__ = ["TopicVersions"]


class TopicVersions:
    """Compares each image with the one before; regular expressions may match new topics."""

    __slots__ = ("_image", "_newest")

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._newest = -1

    def newest(self, image: MetadataImage) -> int:
        """Return the version of the newest topics, as far as images were seen."""
        before = self._image
        if before is not image:
            if before is None or any(each not in before.topic_names for each in image.topic_names):
                self._newest = image.offset
            self._image = image
        return self._newest

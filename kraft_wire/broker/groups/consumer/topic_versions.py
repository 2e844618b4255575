"""The version of the metadata in which topics were last created."""

from kraft_wire.metadata.delta import MetadataDelta
from kraft_wire.metadata.image import MetadataImage

__all__ = ["TopicVersions"]


class TopicVersions:
    """Looks at each image once; regular expressions may match the topics that are new in it."""

    __slots__ = ("_image", "_newest")

    def __init__(self) -> None:
        self._image: MetadataImage | None = None
        self._newest = -1

    def published(self, delta: MetadataDelta) -> None:
        """Note an image: a topic that is gone at the next heartbeat counts, too."""
        if self._image is not delta.before:
            self.newest(delta.after)
            return
        former, present = delta.before.topics_by_name, delta.after.topics_by_name
        if any(
            name not in former or former[name].topic_id != present[name].topic_id
            for name in delta.topics
            if name in present
        ):
            self._newest = delta.after.offset
        self._image = delta.after

    def newest(self, image: MetadataImage) -> int:
        """Return the version of the newest topics, as far as images were seen."""
        before = self._image
        if before is not image:
            if before is None or any(each not in before.topic_names for each in image.topic_names):
                self._newest = image.offset
            self._image = image
        return self._newest

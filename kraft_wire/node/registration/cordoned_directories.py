"""The ids of a broker's cordoned log directories, which its heartbeats report (KIP-1066).

They follow the broker's settings in the published metadata. A controller places no new replica on a
broker that reports all of its directories. Not here: which directory a new log gets (`log_store`).
"""

from collections.abc import Mapping

from kraft_wire.controller.controller import layered
from kraft_wire.metadata.features import CORDONED_FROM
from kraft_wire.metadata.image import MetadataImage
from kraft_wire.model import Uuid
from kraft_wire.settings.cordoning import is_cordoned
from kraft_wire.settings.node_settings import NodeSettings

__all__ = ["CordonedDirectories"]


class CordonedDirectories:
    """The cordoned directories of one broker, and whether the controller must learn of a change."""

    def __init__(self, node_id: int, settings: NodeSettings, ids: Mapping[str, Uuid]) -> None:
        """`ids` are those of the log directories, by path."""
        self._node_id = node_id
        self._settings = settings
        self._all_ids = ids
        self.ids = self._cordoned()
        """Those that are cordoned, in the order of `log.dirs`."""
        self._urged: tuple[int, list[Uuid]] | None = None
        """Broker epoch and directories for which a heartbeat was last made due."""

    def follow(self, image: MetadataImage) -> bool:
        """Take the settings of an image; return whether a heartbeat is due because of them.

        That is so once for each change: other images may come before the controller records it.
        """
        settings = layered(self._settings, image, self._node_id)
        if settings is not self._settings:  # most images change no setting of a broker
            self._settings = settings
            self.ids = self._cordoned()
        own = image.brokers.get(self._node_id)
        if own is None or image.metadata_version < CORDONED_FROM:
            return False
        news = own.broker_epoch, self.ids
        if news == self._urged or {*self.ids} == {*(own.cordoned_log_dirs or ())}:
            return False
        self._urged = news
        return True

    def _cordoned(self) -> list[Uuid]:
        return [each for path, each in self._all_ids.items() if is_cordoned(self._settings, path)]

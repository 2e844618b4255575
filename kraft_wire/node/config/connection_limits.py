"""The limits of connections in force: file, dynamic settings, listeners, quotas of addresses.

KIP-402 and KIP-612. Controllers read these settings as brokers do.
"""

from collections.abc import Iterable, Mapping

from kraft_wire.controller.controller import layered
from kraft_wire.metadata.image import BROKER_RESOURCE, MetadataImage
from kraft_wire.node.config.node_config import NodeConfig
from kraft_wire.node.limits import ServerLimits, listener_entries, server_limits
from kraft_wire.node.quotas.levels import rates_of_addresses

__all__ = ["limits_in_force"]


def limits_in_force(config: NodeConfig, image: MetadataImage) -> ServerLimits:
    """Return the limits of a node under the dynamic settings and quotas of an image."""
    own = image.config(BROKER_RESOURCE, str(config.node_id))
    return server_limits(
        layered(config.settings, image, config.node_id),
        config.connections_possible,
        listener_entries=_merged(
            config.listener_entries,
            listener_entries((each.name for each in config.all_listeners), own),
        ),
        rate_of_address=rates_of_addresses(image.client_quotas),
    )


def _merged(
    file: Mapping[str, Mapping[str, str]], dynamic: Mapping[str, Mapping[str, str]]
) -> dict[str, Mapping[str, str]]:
    names: Iterable[str] = dict.fromkeys([*file, *dynamic])
    return {name: {**file.get(name, {}), **dynamic.get(name, {})} for name in names}

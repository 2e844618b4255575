"""All probes: importing a module of probes enters them into the table."""

from tests.apache.differential import (
    committed_offset_probes,
    config_probes,
    fetch_probes,
    group_probes,
    metadata_probes,
    node_probes,
    offset_lookup_probes,
    produce_probes,
    shape_probes,
    topic_admin_probes,
)
from tests.apache.differential.probes import PROBES

__all__ = [
    "PROBES",
    "committed_offset_probes",
    "config_probes",
    "fetch_probes",
    "group_probes",
    "metadata_probes",
    "node_probes",
    "offset_lookup_probes",
    "produce_probes",
    "shape_probes",
    "topic_admin_probes",
]

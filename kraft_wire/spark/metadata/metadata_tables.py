"""The metadata log as Arrow tables, with those about transactions and groups. No Spark here.

`brokers`, `controllers`, `topics`, `partitions`, `configs` and `features` are the image at the end;
`partition_changes` and `elections` are the history; `transactions` is that of transactional ids,
from `__transaction_state`; `groups`, `members` and `group_offsets` are the state at the end of
`__consumer_offsets`. Every table names the cluster, so that those of many clusters can be in one
directory.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa

from kraft_wire.columnar.records import TIME_MS_MAX
from kraft_wire.metadata.features import KRAFT_VERSION
from kraft_wire.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    EMPTY_IMAGE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    EndpointImage,
    FeatureRange,
    MetadataImage,
)
from kraft_wire.model import uuid_to_text
from kraft_wire.spark.metadata.group_schemas import GROUP_TABLES
from kraft_wire.spark.metadata.history_reading import ReadHistory
from kraft_wire.spark.metadata.partition_states import OffsetAndTimestamp
from kraft_wire.spark.metadata.partition_tables import NODES, TEXTS, TIME, partition_tables

__all__ = ["TABLE_SCHEMAS", "tables_of"]

Row = dict[str, object]

_ENDPOINTS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                ("name", pa.string()),
                ("host", pa.string()),
                ("port", pa.int32()),
                ("securityProtocol", pa.int32()),
            ]
        ),
    )
)
_LEVELS: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([("name", pa.string()), ("minLevel", pa.int32()), ("maxLevel", pa.int32())]),
    )
)
_PARTITIONS: Final = pa.list_(
    pa.field("element", pa.struct([("topic", pa.string()), ("partition", pa.int32())]))
)
_PARTITION_COLUMNS: Final[list[tuple[str, pa.DataType]]] = [
    ("clusterId", pa.string()),
    ("topic", pa.string()),
    ("topicId", pa.string()),
    ("partition", pa.int32()),
    ("leader", pa.int32()),
    ("leaderEpoch", pa.int32()),
    ("partitionEpoch", pa.int32()),
    ("replicas", NODES),
    ("isr", NODES),
    ("elr", NODES),
    ("lastKnownElr", NODES),
    ("addingReplicas", NODES),
    ("removingReplicas", NODES),
    ("leaderRecoveryState", pa.int32()),
]

TABLE_SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "brokers": pa.schema(
        [
            ("clusterId", pa.string()),
            ("broker", pa.int32()),
            ("brokerEpoch", pa.int64()),
            ("incarnationId", pa.string()),
            ("fenced", pa.bool_()),
            ("inControlledShutdown", pa.bool_()),
            ("rack", pa.string()),
            ("endpoints", _ENDPOINTS),
            ("features", _LEVELS),
            ("logDirs", TEXTS),
            ("cordonedLogDirs", TEXTS),
        ]
    ),
    "controllers": pa.schema(
        [
            ("clusterId", pa.string()),
            ("controller", pa.int32()),
            ("incarnationId", pa.string()),
            ("endpoints", _ENDPOINTS),
            ("features", _LEVELS),
        ]
    ),
    "topics": pa.schema(
        [
            ("clusterId", pa.string()),
            ("topic", pa.string()),
            ("topicId", pa.string()),
            ("partitions", pa.int32()),
            ("createdOffset", pa.int64()),
            ("createdTimestamp", TIME),
        ]
    ),
    "partitions": pa.schema([*_PARTITION_COLUMNS, ("directories", TEXTS)]),
    "partition_changes": pa.schema(
        [
            *_PARTITION_COLUMNS,
            ("fromOffset", pa.int64()),
            ("untilOffset", pa.int64()),
            ("fromTimestamp", TIME),
            ("untilTimestamp", TIME),
        ]
    ),
    "configs": pa.schema(
        [
            ("clusterId", pa.string()),
            ("resourceType", pa.string()),
            ("resource", pa.string()),
            ("name", pa.string()),
            ("value", pa.string()),
        ]
    ),
    "features": pa.schema(
        [("clusterId", pa.string()), ("feature", pa.string()), ("level", pa.int32())]
    ),
    "elections": pa.schema(
        [
            ("clusterId", pa.string()),
            ("topic", pa.string()),
            ("topicId", pa.string()),
            ("partition", pa.int32()),
            ("leaderEpoch", pa.int32()),
            ("fromLeader", pa.int32()),
            ("toLeader", pa.int32()),
            ("isUnclean", pa.bool_()),
            ("offset", pa.int64()),
            ("timestamp", TIME),
        ]
    ),
    "transactions": pa.schema(
        [
            ("clusterId", pa.string()),
            ("transactionalId", pa.string()),
            ("statePartition", pa.int32()),
            ("state", pa.string()),
            ("producerId", pa.int64()),
            ("producerEpoch", pa.int32()),
            ("timeoutMs", pa.int32()),
            ("partitions", _PARTITIONS),
            ("startTimestamp", TIME),
            ("fromOffset", pa.int64()),
            ("untilOffset", pa.int64()),
            ("fromTimestamp", TIME),
            ("untilTimestamp", TIME),
        ]
    ),
    **GROUP_TABLES,
}
"""Unknown offsets and times are null: before the log that is left, or not yet over."""

_RESOURCES: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client-metrics",
    GROUP_RESOURCE: "group",
}
_NO_GROUPS: Final = {name: schema.empty_table() for name, schema in GROUP_TABLES.items()}


def tables_of(
    read: ReadHistory,
    cluster_id: str,
    transactions: Iterable[Row] = (),
    groups: Mapping[str, pa.Table] = _NO_GROUPS,
) -> dict[str, pa.Table]:
    """Return the tables of one cluster, by name, with the topics of one share in them."""
    image = read.history.image(read.end, read.epoch)
    whole = image if read.share.is_first else EMPTY_IMAGE
    kraft_version = read.kraft_version if read.share.is_first else 0
    rows: dict[str, Iterable[Row]] = {
        "brokers": _brokers(whole),
        "controllers": _controllers(whole),
        "topics": _topics(image, read),
        "configs": _configs(whole),
        "features": [
            {"feature": name, "level": level}
            for name, level in sorted(_finalized(whole, kraft_version).items())
        ],
        "elections": _quorum_elections(read),
        "transactions": transactions,
    }
    columns = partition_tables(read.history.partitions)
    found = {}
    for name, schema in TABLE_SCHEMAS.items():
        parts = [groups[name]] if name in groups else []
        if name in rows:
            named = [row | {"clusterId": cluster_id} for row in rows[name]]
            parts.append(pa.Table.from_pylist(named, schema=schema))
        if name in columns:
            parts.append(_table(columns[name], cluster_id, schema))
        found[name] = pa.concat_tables(parts)
    found["elections"] = found["elections"].sort_by("offset")
    assert found["partitions"].num_rows == sum(len(each.partitions) for each in image.topics())
    return found


def _finalized(image: MetadataImage, kraft_version: int) -> dict[str, int]:
    """Return the finalised features of ApiVersions, with kraft.version if it is not 0."""
    levels = dict(image.finalized_features)
    return levels | {KRAFT_VERSION: kraft_version} if kraft_version else levels


def _table(columns: Mapping[str, pa.Array], cluster_id: str, schema: pa.Schema) -> pa.Table:
    count = len(next(iter(columns.values())))
    known = dict(columns) | {"clusterId": pa.repeat(pa.scalar(cluster_id), count)}
    return pa.Table.from_arrays([known[name] for name in schema.names], schema=schema)


def _brokers(image: MetadataImage) -> Iterable[Row]:
    for _, each in sorted(image.brokers.items()):
        yield {
            "broker": each.broker_id,
            "brokerEpoch": each.broker_epoch,
            "incarnationId": uuid_to_text(each.incarnation_id),
            "fenced": each.fenced,
            "inControlledShutdown": each.in_controlled_shutdown,
            "rack": each.rack,
            "endpoints": _endpoints(each.endpoints),
            "features": _levels(each.features),
            "logDirs": [uuid_to_text(uuid) for uuid in each.log_dirs],
            "cordonedLogDirs": [uuid_to_text(uuid) for uuid in each.cordoned_log_dirs or ()],
        }


def _controllers(image: MetadataImage) -> Iterable[Row]:
    for _, each in sorted(image.controllers.items()):
        yield {
            "controller": each.controller_id,
            "incarnationId": uuid_to_text(each.incarnation_id),
            "endpoints": _endpoints(each.endpoints),
            "features": _levels(each.features),
        }


def _endpoints(endpoints: Mapping[str, EndpointImage]) -> list[Row]:
    return [
        {
            "name": each.name,
            "host": each.host,
            "port": each.port,
            "securityProtocol": each.security_protocol,
        }
        for _, each in sorted(endpoints.items())
    ]


def _levels(features: Mapping[str, FeatureRange]) -> list[Row]:
    return [
        {"name": name, "minLevel": each.min_level, "maxLevel": each.max_level}
        for name, each in sorted(features.items())
    ]


def _topics(image: MetadataImage, read: ReadHistory) -> Iterable[Row]:
    for topic in image.topics():
        if not read.share.has(topic.topic_id):
            continue
        at = read.history.partitions.topic(topic.topic_id).created
        yield {
            "topic": topic.name,
            "topicId": uuid_to_text(topic.topic_id),
            "partitions": len(topic.partitions),
            "createdOffset": None if at.offset < 0 else at.offset,
            "createdTimestamp": _time(at),
        }


def _time(at: OffsetAndTimestamp) -> int | None:
    """Return microseconds; None for an unknown or invalid time."""
    return at.timestamp_ms * 1000 if 0 <= at.timestamp_ms <= TIME_MS_MAX else None


def _quorum_elections(read: ReadHistory) -> Iterable[Row]:
    for each in read.history.elections:
        yield {
            "topic": "__cluster_metadata",
            "partition": 0,
            "leaderEpoch": each.leader_epoch,
            "fromLeader": each.from_leader,
            "toLeader": each.to_leader,
            "isUnclean": False,
            "offset": each.at.offset,
            "timestamp": _time(each.at),
        }


def _configs(image: MetadataImage) -> Iterable[Row]:
    for (kind, resource), values in sorted(image.configs.items()):
        for name, value in sorted(values.items()):
            yield {
                "resourceType": _RESOURCES.get(kind, str(kind)),
                "resource": resource,
                "name": name,
                "value": value,
            }

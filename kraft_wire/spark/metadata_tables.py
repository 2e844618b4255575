"""What the metadata log says as eight Arrow tables. No Spark here.

`brokers`, `controllers`, `topics`, `partitions`, `configs` and `features` are the image at the end;
`partition_changes` and `elections` are the history. Every table names the cluster, so that those of
many clusters can stand in one directory.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa

from kraft_wire.controller.features import KRAFT_VERSION
from kraft_wire.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    EMPTY_IMAGE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    EndpointImage,
    FeatureRange,
    MetadataImage,
)
from kraft_wire.model import Uuid, uuid_to_text
from kraft_wire.spark.history_reading import ReadHistory
from kraft_wire.spark.metadata_history import UNKNOWN, Change, Election, Moment

__all__ = ["TABLES", "tables_of"]

Row = dict[str, object]
T = TypeVar("T", bound=Hashable)

_TIME: Final = pa.timestamp("us", tz="UTC")
_NODES: Final = pa.list_(pa.field("element", pa.int32()))
_TEXTS: Final = pa.list_(pa.field("element", pa.string()))
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
_STATE: Final[list[tuple[str, pa.DataType]]] = [
    ("clusterId", pa.string()),
    ("topic", pa.string()),
    ("topicId", pa.string()),
    ("partition", pa.int32()),
    ("leader", pa.int32()),
    ("leaderEpoch", pa.int32()),
    ("partitionEpoch", pa.int32()),
    ("replicas", _NODES),
    ("isr", _NODES),
    ("elr", _NODES),
    ("lastKnownElr", _NODES),
    ("addingReplicas", _NODES),
    ("removingReplicas", _NODES),
    ("leaderRecoveryState", pa.int32()),
]

TABLES: Final[Mapping[str, pa.Schema]] = {
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
            ("logDirs", _TEXTS),
            ("cordonedLogDirs", _TEXTS),
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
            ("createdTimestamp", _TIME),
        ]
    ),
    "partitions": pa.schema([*_STATE, ("directories", _TEXTS)]),
    "partition_changes": pa.schema(
        [
            *_STATE,
            ("fromOffset", pa.int64()),
            ("untilOffset", pa.int64()),
            ("fromTimestamp", _TIME),
            ("untilTimestamp", _TIME),
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
            ("timestamp", _TIME),
        ]
    ),
}
"""Unknown offsets and times are null: before the log that is left, or not yet over."""

_RESOURCES: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    CLIENT_METRICS_RESOURCE: "client-metrics",
    GROUP_RESOURCE: "group",
}


def tables_of(read: ReadHistory, cluster_id: str) -> dict[str, pa.Table]:
    """Return the tables of one cluster, by name, with the topics of one share in them."""
    image = read.history.image(read.end, read.epoch)
    whole = image if read.share.is_first else EMPTY_IMAGE
    kraft_version = read.kraft_version if read.share.is_first else 0
    lasting = list(read.history.lasting(image))
    changes = [*read.history.ended, *lasting]
    rows: dict[str, list[Row]] = {
        "brokers": list(_brokers(whole)),
        "controllers": list(_controllers(whole)),
        "topics": list(_topics(image, read)),
        "configs": list(_configs(whole)),
        "features": [
            {"feature": name, "level": level}
            for name, level in sorted(_finalized(whole, kraft_version).items())
        ],
    }
    states = _states(changes)
    last = {name: array.slice(len(changes) - len(lasting)) for name, array in states.items()}
    columns = {
        "partitions": last | {"directories": _directories(lasting)},
        "partition_changes": states | _intervals(changes),
        "elections": _elections(read.history.elections),
    }
    found = {}
    for name, schema in TABLES.items():
        if name in rows:
            named = [row | {"clusterId": cluster_id} for row in rows[name]]
            found[name] = pa.Table.from_pylist(named, schema=schema)
        else:
            found[name] = _table(columns[name], cluster_id, schema)
    return found


def _finalized(image: MetadataImage, kraft_version: int) -> dict[str, int]:
    """Return what ApiVersions tells as finalised: kraft.version among it where it is not 0."""
    levels = dict(image.finalized_features)
    return levels | {KRAFT_VERSION: kraft_version} if kraft_version else levels


def _table(columns: Mapping[str, pa.Array], cluster_id: str, schema: pa.Schema) -> pa.Table:
    count = len(next(iter(columns.values())))
    known = dict(columns) | {"clusterId": pa.repeat(pa.scalar(cluster_id), count)}
    return pa.Table.from_arrays([known[name] for name in schema.names], schema=schema)


def _states(changes: Sequence[Change]) -> dict[str, pa.Array]:
    """Return the columns of partitions' states."""
    states = [each.state for each in changes]
    return {
        "topic": pa.array([each.topic for each in changes], pa.string()),
        "topicId": _ids([each.topic_id for each in changes]),
        "partition": _numbers([each.partition for each in states]),
        "leader": _numbers([each.leader for each in states]),
        "leaderEpoch": _numbers([each.leader_epoch for each in states]),
        "partitionEpoch": _numbers([each.partition_epoch for each in states]),
        "replicas": _nodes([each.replicas for each in states]),
        "isr": _nodes([each.isr for each in states]),
        "elr": _nodes([each.eligible_leader_replicas for each in states]),
        "lastKnownElr": _nodes([each.last_known_elr for each in states]),
        "addingReplicas": _nodes([each.adding_replicas for each in states]),
        "removingReplicas": _nodes([each.removing_replicas for each in states]),
        "leaderRecoveryState": _numbers([each.leader_recovery_state for each in states]),
    }


def _intervals(changes: Sequence[Change]) -> dict[str, pa.Array]:
    begins = _moments([each.since for each in changes])
    ends = _moments([each.until or UNKNOWN for each in changes])
    names = ("fromOffset", "fromTimestamp", "untilOffset", "untilTimestamp")
    return dict(zip(names, (*begins, *ends), strict=True))


def _elections(elections: Sequence[Election]) -> dict[str, pa.Array]:
    offsets, times = _moments([each.at for each in elections])
    return {
        "topic": pa.array([each.topic for each in elections], pa.string()),
        "topicId": _ids([each.topic_id for each in elections]),
        "partition": _numbers([each.partition for each in elections]),
        "leaderEpoch": _numbers([each.leader_epoch for each in elections]),
        "fromLeader": _numbers([each.from_leader for each in elections]),
        "toLeader": _numbers([each.to_leader for each in elections]),
        "isUnclean": pa.array([each.is_unclean for each in elections], pa.bool_()),
        "offset": offsets,
        "timestamp": times,
    }


def _ids(topic_ids: Sequence[Uuid | None]) -> pa.Array:
    return _shared(topic_ids, _id_texts)


def _id_texts(topic_ids: Sequence[Uuid | None]) -> pa.Array:
    texts = [None if each is None else uuid_to_text(each) for each in topic_ids]
    return pa.array(texts, pa.string())


def _shared(values: Sequence[T], made: Callable[[Sequence[T]], pa.Array]) -> pa.Array:
    """Return an array of values that many rows have in common: each is made once, and taken."""
    places: dict[T, int] = {}
    taken = [places.setdefault(each, len(places)) for each in values]
    return made(list(places)).take(pa.array(np.array(taken, np.int32)))


def _numbers(values: Sequence[int]) -> pa.Array:
    return pa.array(np.array(values, np.int32))


def _nodes(values: Sequence[tuple[int, ...]]) -> pa.Array:
    return _shared(values, lambda distinct: pa.array(distinct, _NODES))


def _moments(moments: Sequence[Moment]) -> tuple[pa.Array, pa.Array]:
    """Return offsets and times; null where they are not known."""
    flat = np.fromiter(chain.from_iterable(moments), np.int64, 2 * len(moments))
    offsets, stamps = np.ascontiguousarray(flat.reshape(-1, 2).T)
    times = pa.array(stamps * 1000, mask=stamps < 0).cast(_TIME)
    return pa.array(offsets, mask=offsets < 0), times


def _directories(changes: Sequence[Change]) -> pa.Array:
    return _shared([each.state.directories for each in changes], _directory_texts)


def _directory_texts(distinct: Sequence[tuple[Uuid, ...]]) -> pa.Array:
    return pa.array([[uuid_to_text(each) for each in ids] for ids in distinct], _TEXTS)


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
        at = read.history.created[topic.topic_id]
        yield {
            "topic": topic.name,
            "topicId": uuid_to_text(topic.topic_id),
            "partitions": len(topic.partitions),
            "createdOffset": None if at.offset < 0 else at.offset,
            "createdTimestamp": None if at.timestamp_ms < 0 else at.timestamp_ms * 1000,
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

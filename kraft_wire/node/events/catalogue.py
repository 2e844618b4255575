"""Every event that a node or proxy logs, with its level, its component and its meaning.

docs/LOG.md has this table; `tests/node/test_event_catalogue.py` compares it with the events
that the code reports. Not here: how a line is written (`event_log`).
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

__all__ = ["EVENTS", "LEVELS", "Event"]

LEVELS: Final[Mapping[str, int]] = {
    "ALL": 0,
    "TRACE": 5,
    "DEBUG": 10,
    "INFO": 20,
    "WARN": 30,
    "ERROR": 40,
    "FATAL": 50,
    "OFF": 99,
}
"""The levels of log4j, by name; a line below the level in force is not written."""


class Event(NamedTuple):
    """One kind of line."""

    level: str
    component: str
    meaning: str


EVENTS: Final[Mapping[str, Event]] = {
    # -- the process
    "starting": Event(
        "INFO", "server", "The first line: version, identity, directories and the disk reserve."
    ),
    "unknown_log_level": Event(
        "WARN", "server", "A variable names no level of log4j; `used` is what applies instead."
    ),
    "unknown_loggers": Event(
        "WARN", "server", "`KAFKA_LOG4J_LOGGERS` names loggers to which no component belongs."
    ),
    "unknown_config_key": Event(
        "WARN", "server", "A key of the file or environment has no effect."
    ),
    "metrics": Event("INFO", "server", "Address of the metrics endpoint."),
    "control": Event("INFO", "server", "Address of the API for fault rules."),
    "ready": Event("INFO", "server", "Clients are served."),
    "stopping": Event("INFO", "server", "A signal began a graceful stop."),
    "stopped": Event("INFO", "server", "The process ends; `clean=False` names the reason."),
    "stopped_at_once": Event("WARN", "server", "A second signal ended the process."),
    "slow_operation": Event(
        "WARN", "server", "The node's thread was blocked: no other request was served meanwhile."
    ),
    # -- connections and requests
    "accept_delayed": Event(
        "INFO", "network", "New connections of a listener wait, because of the setting in `reason`."
    ),
    "accept_failed": Event(
        "WARN", "network", "The system has no free descriptor for a connection."
    ),
    "connection_opened": Event("DEBUG", "network", "A client or peer connected."),
    "connection_closed": Event("DEBUG", "network", "A connection ended."),
    "rejected": Event(
        "WARN", "network", "A connection was refused or closed, for a limit or error."
    ),
    "rejected_suppressed": Event("WARN", "network", "Number of omitted lines of this event."),
    "version_refused": Event(
        "INFO",
        "network",
        "A request of an unsupported version got an error; others are `rejected`.",
    ),
    "version_refused_suppressed": Event(
        "INFO", "network", "Number of omitted lines of this event."
    ),
    "request_memory_exhausted": Event(
        "WARN", "network", "Requests wait for memory: `queued.max.request.bytes` is in use."
    ),
    "slow_request": Event(
        "WARN",
        "network",
        "A request took too long; fetches and joins, which may wait, are not logged.",
    ),
    "slow_flush": Event("WARN", "storage", "The disk took too long to make records durable."),
    "lines_suppressed": Event(
        "WARN", "network", "Number of omitted lines of one event and address."
    ),
    "producer_refused": Event(
        "WARN", "broker", "A batch has an epoch or sequence that its producer state forbids."
    ),
    "producer_refused_suppressed": Event(
        "WARN", "broker", "Number of omitted lines of this event."
    ),
    # -- authorization
    "authorization_denied": Event(
        "INFO", "authorizer", "A principal was denied an operation; the words are Kafka's."
    ),
    "authorization_denied_suppressed": Event(
        "INFO", "authorizer", "Number of omitted lines of this event."
    ),
    "authorization_granted": Event("DEBUG", "authorizer", "A principal was allowed an operation."),
    "authorization_granted_suppressed": Event(
        "DEBUG", "authorizer", "Number of omitted lines of this event."
    ),
    "acls_not_loaded": Event(
        "WARN",
        "authorizer",
        "A request came before the first metadata and was refused; logged once.",
    ),
    "key_set_fetched": Event(
        "INFO", "server", "A listener checks signed tokens by other keys from now on."
    ),
    "key_set_failed": Event(
        "WARN", "server", "Keys of signed tokens cannot be fetched; logged once until they can."
    ),
    "link_token_failed": Event(
        "WARN",
        "server",
        "There is no new token to log in to other nodes; logged once until there is one.",
    ),
    "listener_is_open": Event(
        "WARN",
        "server",
        "Everyone who reaches a listener may do everything: it knows no clients, and there is no "
        "authorizer. Not for addresses of this machine alone.",
    ),
    "passwords_in_plain_text": Event(
        "WARN", "server", "A listener takes passwords or tokens over connections in plain text."
    ),
    "token_checks_are_weak": Event(
        "WARN", "server", "A listener accepts tokens of more issuers or audiences than it should."
    ),
    "stores_exchanged": Event(
        "INFO", "server", "A listener uses other key or trust stores for new connections."
    ),
    "stores_not_exchanged": Event(
        "WARN", "server", "Stores of a committed setting cannot be used; the present ones stay."
    ),
    # -- links to other nodes
    "peer_unreachable": Event(
        "WARN", "links", "A node cannot be reached; logged once until it answers."
    ),
    "peer_reached": Event("INFO", "links", "A node that could not be reached answers."),
    "peer_login_failed": Event(
        "WARN", "links", "A login to a node failed, or its certificate has another name."
    ),
    "peer_of_another_cluster": Event(
        "ERROR",
        "links",
        "A node refuses requests because it has another cluster id: check `cluster.id` in "
        "meta.properties, and the configured addresses.",
    ),
    "peer_link_closed": Event(
        "WARN", "links", "A link was closed: the peer sent a wrong frame, or none in time."
    ),
    "forwarding_failed": Event(
        "WARN", "links", "A controller returned an envelope without a readable answer."
    ),
    "peer_frame_refused": Event("WARN", "links", "A peer sent a frame of an impossible length."),
    # -- the quorum
    "role_changed": Event(
        "INFO", "quorum", "This replica has another role or epoch, with the reason."
    ),
    "quorum_leader_elected": Event("INFO", "quorum", "A leader of the metadata quorum is known."),
    "controller_active": Event("INFO", "controller", "The controller of this node is active."),
    "controller_resigned": Event(
        "INFO", "controller", "The controller of this node is no longer active."
    ),
    "broker_session_expired": Event(
        "WARN", "controller", "A broker sent no heartbeat in time and is fenced."
    ),
    "metadata_append_refused": Event("WARN", "quorum", "The disk has no room for metadata."),
    "metadata_batch_refused": Event("WARN", "quorum", "The leader sent no valid batch."),
    "metadata_snapshot": Event("INFO", "quorum", "A metadata snapshot was written."),
    "metadata_snapshot_impossible": Event("WARN", "quorum", "A snapshot could not be written."),
    "metadata_snapshot_refused": Event("WARN", "quorum", "A fetched snapshot is damaged."),
    # -- what the metadata say
    "metadata_loaded": Event("INFO", "metadata", "The first complete image, or a later snapshot."),
    "broker_registered": Event(
        "INFO", "metadata", "A broker, or a new incarnation of one, registered."
    ),
    "broker_unregistered": Event("INFO", "metadata", "A registration was removed."),
    "broker_fenced": Event("WARN", "metadata", "A broker may lead no partition."),
    "broker_unfenced": Event("INFO", "metadata", "A broker may lead partitions."),
    "broker_stopping": Event("INFO", "metadata", "A broker asked to stop."),
    "broker_stopped": Event("INFO", "metadata", "A broker that asked to stop is fenced."),
    "topic_created": Event("INFO", "metadata", "A topic was created."),
    "topic_deleted": Event("INFO", "metadata", "A topic was deleted."),
    "partitions_added": Event("INFO", "metadata", "A topic has more partitions."),
    "settings_changed": Event("INFO", "metadata", "Dynamic settings changed; names, no values."),
    "feature_level_changed": Event("INFO", "metadata", "A feature has another level."),
    "partition_leader_changed": Event("INFO", "metadata", "A partition has another leader."),
    "partition_offline": Event("WARN", "metadata", "A partition has no leader."),
    "unclean_leader_elected": Event(
        "WARN", "metadata", "A leader outside the ISR was elected: records may be lost."
    ),
    "isr_shrunk": Event("WARN", "metadata", "An ISR has fewer members."),
    "isr_expanded": Event("INFO", "metadata", "An ISR has more members."),
    "isr_changed": Event("INFO", "metadata", "An ISR has other members."),
    "replicas_changed": Event("INFO", "metadata", "A partition has other replicas."),
    "lines_omitted": Event(
        "INFO", "metadata", "Number of omitted lines of one event in one change."
    ),
    # -- the broker
    "follower_out_of_sync": Event(
        "WARN", "broker", "A follower lags too long; the leader asks to shrink the ISR."
    ),
    "replica_fetch_refused": Event("WARN", "broker", "A leader answered a fetch with an error."),
    "replica_partition_refused": Event("WARN", "broker", "A leader refused one partition."),
    "replica_records_refused": Event("WARN", "broker", "A leader sent records that are not valid."),
    "replica_truncated_below_high_watermark": Event(
        "WARN", "broker", "A follower cut its log below its high watermark."
    ),
    "replica_restarted_at_log_start": Event(
        "WARN", "broker", "A follower dropped its log: the leader has deleted the next records."
    ),
    "broker_registration_failed": Event(
        "WARN", "broker", "The controller refused to register this broker."
    ),
    "broker_heartbeat_failed": Event("WARN", "broker", "The controller refused a heartbeat."),
    "broker_registration_replaced": Event(
        "WARN", "broker", "Another incarnation registered; this one registers again."
    ),
    "controlled_shutdown_given_up": Event(
        "WARN", "broker", "The controller gave no permission to stop in time."
    ),
    "transaction_timed_out": Event(
        "WARN", "coordinator", "An open transaction exceeded its timeout and is aborted."
    ),
    "transaction_marker_refused": Event(
        "WARN", "coordinator", "A marker was refused and is sent again."
    ),
    "transaction_marker_awaits_topic": Event(
        "WARN", "coordinator", "A marker waits until __consumer_offsets is created."
    ),
    "transaction_marker_given_up": Event(
        "WARN", "coordinator", "A partition refuses a marker for good."
    ),
    # -- storage
    "log_directory_opened": Event("INFO", "storage", "A log directory with its room and reserve."),
    "log_directory_loading": Event(
        "INFO", "storage", "The logs of a directory are opened, and verified after an unclean stop."
    ),
    "log_directory_loaded": Event("INFO", "storage", "The logs of a directory are open."),
    "torn_tail_cut": Event("WARN", "storage", "Recovery cut bytes after the last whole batch."),
    "log_refused": Event(
        "ERROR", "storage", "A damaged log is not served; the line names a command that shows more."
    ),
    "records_unreadable": Event(
        "ERROR", "storage", "A batch cannot be read: its log is not compacted."
    ),
    "stray_log_set_aside": Event(
        "WARN", "storage", "A log that is not a replica of this node was renamed."
    ),
    "replica_move_started": Event(
        "INFO", "storage", "A replica begins to move to another log directory."
    ),
    "replica_move_resumed": Event(
        "INFO", "storage", "A start continues a move, from the end of its copy."
    ),
    "replica_move_cancelled": Event(
        "INFO", "storage", "A move ended by a request; the replica stays where it is."
    ),
    "replica_moved": Event(
        "INFO", "storage", "A replica is served from its new log directory from now on."
    ),
    "replica_copy_dropped": Event(
        "WARN", "storage", "The copy of a moving replica is damaged and was removed."
    ),
    "replica_copy_set_aside": Event(
        "WARN", "storage", "A second log or copy of a replica was renamed; `reason` has the cause."
    ),
    "log_directory_offline": Event("ERROR", "storage", "A disk failed: its logs are not served."),
    "log_directory_full": Event("ERROR", "storage", "Appends are refused until there is room."),
    "log_directory_has_room": Event("INFO", "storage", "Appends are accepted again."),
    "append_refused": Event("ERROR", "storage", "The full disk refused records."),
    "appends_refused": Event(
        "ERROR", "storage", "Number of refused appends since the last line, once a minute."
    ),
    "segment_rolled": Event("INFO", "storage", "A log has a new active segment."),
    "segments_deleted": Event("INFO", "storage", "Retention removed segments."),
    # -- the proxy
    "upstream_refused": Event("WARN", "proxy", "The cluster behind the proxy cannot be reached."),
    "frame_refused": Event("WARN", "proxy", "A frame is not relayed."),
    "not_rewritten": Event("WARN", "proxy", "Addresses in a response cannot be replaced."),
}
"""By name, in the order of the page."""

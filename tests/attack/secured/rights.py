"""Attacks of those who have a login: rights, other people's sessions, settings, floods."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterable
from typing import Any

from kraft_wire.wire.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kraft_wire.wire.generated.create_acls import CreateAclsRequest
from kraft_wire.wire.generated.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kraft_wire.wire.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kraft_wire.wire.generated.describe_acls import DescribeAclsRequest
from kraft_wire.wire.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kraft_wire.wire.generated.envelope import EnvelopeRequest
from kraft_wire.wire.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from kraft_wire.wire.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kraft_wire.wire.generated.init_producer_id import InitProducerIdRequest
from kraft_wire.wire.generated.metadata import MetadataRequest, MetadataRequestTopic
from kraft_wire.wire.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kraft_wire.wire.generated.push_telemetry import PushTelemetryRequest
from kraft_wire.wire.generated.registry import request_class
from kraft_wire.wire.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kraft_wire.wire.json_form import message_to_json
from kraft_wire.wire.message import Message
from tests.apache.secured_node import ACCOUNTS
from tests.attack import frames
from tests.attack.secured.line import outcome_of
from tests.attack.secured.target import LITERAL, PREFIXED, TOPIC, SecuredTarget, entry

_BROKER_RESOURCE = 4
_ANY = 1
_CLIENTS = 20_000
_SHARE_STATE_KEYS = (83, 84, 85, 86, 87)


def _fetch(target: SecuredTarget, topic: str, **changed: Any) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    named = FetchTopic(topic=topic, topic_id=target.topic_ids[topic], partitions=[asked])
    given = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "topics": [named]}
    return FetchRequest(**{**given, **changed})


def rights_that_go(target: SecuredTarget) -> str:
    """S28: an entry that is removed counts for the next request of a connection."""
    made = CreateAclsRequest(creations=[entry(TOPIC, "good", "bob")])
    target.as_super_user(made, 3)
    with target.logged_in("bob") as line:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="good")])
        if line.outcome(request, 9) != "0":
            return "the right has no effect"
        removed = DeleteAclsFilter(
            resource_type_filter=TOPIC,
            resource_name_filter="good",
            pattern_type_filter=LITERAL,
            principal_filter="User:bob",
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )
        target.as_super_user(DeleteAclsRequest(filters=[removed]), 3)
        time.sleep(0.2)
        return line.outcome(request, 9)


def replica_ids(target: SecuredTarget) -> str:
    """S29: a consumer that calls itself a replica, or a debugger."""
    with target.logged_in() as line:
        seen = {line.outcome(_fetch(target, "ann-own", replica_id=each), 12) for each in (1, 7)}
        seen.add(line.outcome(_fetch(target, "secret", replica_id=-2), 12))
    return "+".join(sorted(seen))


def foreign_session(target: SecuredTarget) -> str:
    """S30: the fetch session of another user."""
    with target.logged_in() as line:
        made = line.ask(_fetch(target, "ann-own", session_epoch=0), 12)
        with target.logged_in("bob") as other:
            theirs = FetchRequest(session_id=made.session_id, session_epoch=1, max_bytes=1 << 20)
            outcome = other.outcome(theirs, 12)
        again = FetchRequest(session_id=made.session_id, session_epoch=1, max_bytes=1 << 20)
        return outcome if line.outcome(again, 12) == "0" else "the victim's session has moved"


def cluster_actions(target: SecuredTarget) -> str:
    """S31: what brokers alone may ask of each other."""
    marked = WritableTxnMarkerTopic(name="ann-own", partition_indexes=[0])
    marker = WritableTxnMarker(producer_id=1, transaction_result=True, topics=[marked])
    transaction = AddPartitionsToTxnTransaction(transactional_id="x", producer_id=1)
    asked: list[tuple[Message, int]] = [
        (WriteTxnMarkersRequest(markers=[marker]), 1),
        (AddPartitionsToTxnRequest(transactions=[transaction]), 4),
        *((request_class(key)(), 0) for key in _SHARE_STATE_KEYS),
    ]
    seen = set()
    for request, version in asked:
        with target.logged_in() as line:
            answer = line.ask(request, version)
            outcome = outcome_of(answer, version)
            # Without a topic an answer has no place for an error.
            is_empty = outcome == "0" and not message_to_json(answer, version).get("results", 1)
            if not is_empty:
                seen.add(outcome)
    return "+".join(sorted(seen))


def envelopes(target: SecuredTarget) -> str:
    """S32: a request in the name of another user, at a broker's listener."""
    inner = frames.metadata_v1([])[4:]
    envelope = EnvelopeRequest(
        request_data=inner, request_principal=b"\0\0", client_host_address=b"\x7f\0\0\1"
    )
    seen = set()
    for user in ("ann", "broker"):
        with target.logged_in(user) as line:
            seen.add(outcome_of(line.ask(envelope, 0), 0))
    return "+".join(sorted(seen))


def settings_as_oracle(target: SecuredTarget) -> str:
    """S35: whether a value is valid is not told to who may not change it."""
    seen = set()
    for value in ("1", "no number", "-5"):
        with target.logged_in() as line:
            seen.add(line.outcome(_altered("log.cleaner.threads", value), 1))
    return "+".join(sorted(seen))


def _altered(key: str, value: str, broker: str = "") -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name=key, config_operation=0, value=value)
    resource = AlterConfigsResource(
        resource_type=_BROKER_RESOURCE, resource_name=broker, configs=[config]
    )
    return IncrementalAlterConfigsRequest(resources=[resource])


def existing_names(target: SecuredTarget) -> str:
    """S36: what exists is answered as what does not, to who may not know."""
    for name in ("secret", "ann-denied"):
        absent = "x" * len(name)
        for make in (_metadata, _deletion, _description, _commits):
            with target.logged_in("bob") as line:
                shown = [_shown(line.ask(*make(each)), each) for each in (name, absent)]
            if shown[0] != shown[1]:
                return f"{make.__name__} tells"
    return "alike"


def _shown(answer: Message | None, name: str) -> str:
    shown = "" if answer is None else json.dumps(message_to_json(answer, 1))
    return shown.replace(name, "NAME")


def _metadata(name: str) -> tuple[Message, int]:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 1


def _deletion(name: str) -> tuple[Message, int]:
    return DeleteTopicsRequest(topic_names=[name], timeout_ms=1_000), 1


def _description(name: str) -> tuple[Message, int]:
    resource = DescribeConfigsResource(resource_type=2, resource_name=name)
    return DescribeConfigsRequest(resources=[resource]), 1


def _commits(name: str) -> tuple[Message, int]:
    return OffsetFetchRequest(group_id=name), 1


def literal_stars(target: SecuredTarget) -> str:
    """S37: names that mean something to entries are names as any other."""
    seen = set()
    for name in ("*", "", "kafka-cluster", "!", "."):
        with target.logged_in() as line:
            group = OffsetFetchRequestGroup(group_id=name, topics=None)
            seen.add(line.outcome(OffsetFetchRequest(groups=[group]), 8))
        with target.logged_in() as line:
            seen.add(line.outcome(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9))
    return "+".join(sorted(seen))


def denials(target: SecuredTarget) -> str:
    """S38, S39: a denial beats what is allowed by prefix; WRITE that is denied everywhere."""
    with target.logged_in() as line:
        denied = line.outcome(_fetch(target, "ann-denied"), 12)
        allowed = line.outcome(_fetch(target, "ann-own"), 12)
    with target.logged_in("bob") as line:
        dominated = line.outcome(InitProducerIdRequest(transactional_id=None), 4)
    return f"{denied} {allowed} {dominated}"


def hidden_names(target: SecuredTarget) -> str:
    """S40: a user who may not describe a topic does not learn its name from its id."""
    topic_id = target.topic_ids["secret"]
    with target.logged_in() as line:
        deleted = line.ask(
            DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)], timeout_ms=1_000), 6
        )
        asked = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
        shown = line.ask(asked, 12)
    names = {deleted.responses[0].name, shown.topics[0].name}
    return "hidden" if names <= {None, ""} else f"{names}"


def secrets(target: SecuredTarget) -> str:
    """S41: passwords are in no answer, for super users neither, nor in the log."""
    resources = [
        DescribeConfigsResource(resource_type=_BROKER_RESOURCE, resource_name=name)
        for name in ("1", "")
    ]
    request = DescribeConfigsRequest(
        resources=resources, include_synonyms=True, include_documentation=True
    )
    answer = target.as_super_user(request, 4)
    refused = target.as_super_user(
        _altered("ssl.keystore.password", ACCOUNTS["broker"] + "\n", "1"), 1
    )
    told = json.dumps([message_to_json(answer, 4), message_to_json(refused, 1)])
    told += target.log_path.read_text(errors="replace")
    shown = [user for user, password in ACCOUNTS.items() if password in told]
    return f"of {shown}" if shown or not answer.results[0].configs else "hidden"


def providers(target: SecuredTarget) -> str:
    """S43: nothing in a setting is looked up, and no class is loaded."""
    entry_of = 'com.sun.security.auth.module.{} required user.provider.url="ldap://127.0.0.1:1";'
    changes = [
        ("listener.name.login.plain.sasl.jaas.config", entry_of.format("JndiLoginModule")),
        ("listener.name.login.plain.sasl.jaas.config", entry_of.format("LdapLoginModule")),
        ("ssl.keystore.location", "${file:/etc/passwd:root}"),
        ("listener.name.secure.ssl.keystore.location", "/etc/passwd"),
    ]
    seen = set()
    for key, value in changes:
        answer = target.as_super_user(_altered(key, value, "1"), 1)
        seen.add("refused" if answer.responses[0].error_code else key)
        if "root:" in (answer.responses[0].error_message or ""):
            return "a file is shown"
    return "+".join(sorted(seen))


# -- floods ----------------------------------------------------------------------------------------


def client_ids(target: SecuredTarget) -> str:
    """S44: twenty thousand names, one of them of 32 KiB."""
    with target.logged_in() as line:
        for number in range(_CLIENTS):
            line.says(line.frame(MetadataRequest(topics=[]), 9, f"client-{number}"))
            if line.hears() is None:
                return "close"
        line.says(line.frame(MetadataRequest(topics=[]), 9, "x" * 32_000))
        return "held" if line.hears() is not None else "close"


def without_acknowledgement(target: SecuredTarget) -> str:
    """S45: produce requests without acks, to a denied topic: the node closes the connection."""
    record = frames.batch(frames.one_record(b"x" * 1_000), 1)
    with target.logged_in("bob") as line:
        for _ in range(2_000):
            line.says(frames.produce_v3("secret", record, acks=0))
        return "close" if line.is_closed() else "open"


def telemetry_bomb(target: SecuredTarget) -> str:
    """S47: metrics that decompress to half a gibibyte."""
    bomb = gzip.compress(bytes(8 << 20) * 64, compresslevel=9)
    with target.logged_in() as line:
        request = PushTelemetryRequest(
            client_instance_id=bytes(15) + b"\1", compression_type=1, metrics=bomb
        )
        return "refused" if line.outcome(request, 0) != "0" else "taken"


def stranger_reads_entries(target: SecuredTarget) -> str:
    """S31: entries are the administrators'."""
    request = DescribeAclsRequest(
        resource_type_filter=_ANY, pattern_type_filter=_ANY, operation=_ANY, permission_type=_ANY
    )
    with target.logged_in() as line:
        return line.outcome(request, 3)


def entries_by_strangers(target: SecuredTarget) -> str:
    """S31: a user without rights adds an entry for himself."""
    wanted: Iterable[str] = ("ann", "bob")
    seen = set()
    for user in wanted:
        with target.logged_in(user) as line:
            request = CreateAclsRequest(creations=[entry(TOPIC, "s", user, pattern=PREFIXED)])
            seen.add(line.outcome(request, 3))
    return "+".join(sorted(seen))

"""What a node is told to be: sources in their order, and every wrong value named with its place."""

import pytest

from kraft_wire.metadata.acl_rules import STANDARD_AUTHORIZER
from kraft_wire.node.config.node_config import (
    ConfigError,
    Listener,
    Setting,
    load_config,
    settings_of_file,
)

COMBINED = """\
process.roles=broker,controller
node.id=7
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093
controller.quorum.voters=7@127.0.0.1:19093
log.dirs=/a, /b
num.partitions=3
"""


def of_file(more: str = "") -> dict[str, Setting]:
    return settings_of_file(COMBINED + more, "server.properties")


def test_without_a_file_the_node_is_embedded_on_the_usual_port() -> None:
    config = load_config(None, {})
    assert config.is_embedded
    assert config.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "127.0.0.1", 9092),)
    assert config.log_dirs == ("kraft-wire-data",)
    assert config.settings.integer("offsets.topic.replication.factor") == 1


def test_a_file_is_read_as_kafka_reads_it() -> None:
    config = load_config(of_file("my.own.key=1\n"), {})
    assert (config.node_id, config.log_dirs) == (7, ("/a", "/b"))
    assert [each.name for each in config.listeners] == ["PLAINTEXT"]
    assert config.controller_listener is not None
    assert config.controller_listener.port == 19093
    assert config.settings.integer("num.partitions") == 3
    assert config.unknown_keys == ("my.own.key",)


def test_environment_beats_the_file_and_overrides_beat_both() -> None:
    environment = {
        "KAFKA_NUM_PARTITIONS": "5",
        "KAFKA_MY__OWN___KEY": "x",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "PATH": "/bin",
    }
    config = load_config(of_file(), environment)
    assert config.settings.integer("num.partitions") == 5
    assert config.unknown_keys == ("my_own-key",)
    overridden = load_config(
        of_file(), environment, [("num.partitions", Setting("9", "--override"))]
    )
    assert overridden.settings.integer("num.partitions") == 9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("num.partitions=zero", "server.properties:8: num.partitions=zero: Not a number"),
        ("num.partitions=0", "server.properties:8: num.partitions=0: Value must be at least 1"),
        ("process.roles=", "server.properties:8: process.roles=: Configuration must not be"),
        ("process.roles=controler", "String must be one of: broker, controller"),
        (
            "listeners=TLS://:1",
            "server.properties:8: listeners=TLS://:1: TLS has no security protocol",
        ),
        ("listeners=PLAINTEXT://x", "server.properties:8: listeners=PLAINTEXT://x: 'PLAIN"),
        (f"listeners=PLAINTEXT://:{'9' * 5000}", "9' is not NAME://host:port"),
        (f"node.id={'9' * 5000}", "Not a number of type INT"),
        ("listeners=CONTROLLER://:1", "there is no listener for clients"),
        ("listeners=PLAINTEXT://0.0.0.0:1", "advertised.listeners must contain an address"),
        ("listeners=A://:1,A://:2", "each listener must have a different name"),
        ("node.id=-2", "server.properties:8: node.id=-2"),
        ("log.dirs= , ", "server.properties:8: log.dirs="),
        (
            "controller.quorum.voters=1@127.0.0.1:19093",
            "server.properties:8: controller.quorum.voters=1@127.0.0.1:19093: node.id 7 is not",
        ),
        ("controller.quorum.voters=7@h:1,7@h:2", "voter 7 is listed twice"),
        ("controller.quorum.voters=7@h", "'7@h' is not id@host:port"),
        ("controller.quorum.voters=x@h:1", "'x@h:1' is not id@host:port"),
        ("controller.quorum.voters=-7@h:1", "'-7@h:1' is not id@host:port"),
        (f"controller.quorum.voters={'9' * 5000}@h:1", "9@h:1' is not id@host:port"),
        (f"controller.quorum.voters=7@h:{'9' * 5000}", "9' is not id@host:port"),
        ("controller.quorum.voters=7@h:65536", "'7@h:65536' is not id@host:port"),
        ("controller.quorum.voters=7@h:0", "'7@h:0' is not id@host:port"),
        ("controller.quorum.voters=7@:1", "'7@:1' is not id@host:port"),
        ("controller.quorum.bootstrap.servers=h:0", "'h:0' is not host:port"),
        ("controller.quorum.bootstrap.servers=h:65536", "'h:65536' is not host:port"),
        ("controller.quorum.voters=", "controller.quorum.bootstrap.servers is not set: the"),
        ("controller.quorum.bootstrap.servers=h", "server.properties:8: controller.quorum.boot"),
        ("controller.quorum.bootstrap.servers=:1", "':1' is not host:port"),
        (
            "controller.listener.names=OTHER\nlisteners=PLAINTEXT://:1",
            "controller.listener.names=OTHER: a controller needs one of these names in listeners",
        ),
        ("controller.listener.names=", "Configuration must not be empty"),
        ("listeners=PLAINTEXT://:1", "a controller needs one of these names in listeners"),
        ("process.roles=controller", "PLAINTEXT is not in controller.listener.names"),
        (
            "advertised.listeners=SSL://h:1",
            "SSL is in advertised.listeners, but not in listeners",
        ),
        (
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT",
            "CONTROLLER has no security protocol",
        ),
        (
            "listener.security.protocol.map=CONTROLLER:SSL,PLAINTEXT:PLAINTEXT",
            "ssl.keystore.location is not set: listener CONTROLLER needs a key",
        ),
        ("controller.quorum.election.timeout.ms=-1", "Value must be at least 0"),
        ("controller.quorum.voters=7@0.0.0.0:1", "0.0.0.0 is not an address of a voter"),
        ("controller.quorum.voters=7@h h:1", "'7@h h:1' is not id@host:port"),
        ("controller.quorum.voters=7@@h:1", "'7@@h:1' is not id@host:port"),
        ("broker.id=8", "broker.id=8: You must set `node.id` to the same value as `broker.id`."),
        ("log.cleaner.threads=0", "log.cleaner.threads=0: at least one thread is needed"),
        (
            "log.cleaner.threads=2\nlog.cleaner.dedupe.buffer.size=2097153",
            "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        (
            "replica.socket.timeout.ms=499",
            "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to",
        ),
        (
            "replica.lag.time.max.ms=499",
            "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max",
        ),
        (
            "queued.max.request.bytes=104857599",
            "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
        ),
        (
            "max.connections.per.ip=0",
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides",
        ),
        ("max.connections.per.ip.overrides=h", "'h' is not host:number"),
        ("max.connections.per.ip.overrides=h:1,,i:1", "'' is not host:number"),
        ("max.connections.per.ip.overrides=h:x", "'x' is not a number of connections"),
        ("max.connections.per.ip.overrides=h:2147483648", "'2147483648' is not a number of"),
        ("max.connections.per.ip.overrides=a/b:1,c:1,d e:1", "invalid addresses : a/b,d e"),
        (
            "connections.max.idle.ms=100",
            "connection.failed.authentication.delay.ms=100 should always be less than "
            "connections.max.idle.ms=100 to prevent failed authentication responses from timing",
        ),
        ("connections.max.idle.ms=0", "less than connections.max.idle.ms=0 to prevent"),
        ("offsets.topic.compression.codec=5", "Unknown compression type id: 5"),
        ("share.coordinator.state.topic.compression.codec=-1", "Unknown compression type id: -1"),
        (
            "log.cleaner.min.compaction.lag.ms=2\nlog.cleaner.max.compaction.lag.ms=1",
            "conflict topic config setting min.compaction.lag.ms (2) > max.compaction.lag.ms (1)",
        ),
        ("log.flush.interval.ms=-1", "log.flush.interval.ms=-1: Value must be at least 0"),
        ("log.flush.scheduler.interval.ms=-1", "interval.ms=-1: Value must be at least 0"),
        (
            "group.coordinator.rebalance.protocols=consumer",
            "Disabling the 'classic' protocol is not supported.",
        ),
        ("log.roll.ms=0", "log.roll.ms=0: log.roll.ms must be greater than or equal to 1"),
        ("log.roll.jitter.ms=-1", "log.roll.jitter.ms must be greater than or equal to 0"),
        ("log.retention.ms=0", "log.retention.ms must be unlimited (-1) or, greater than or"),
        ("log.retention.hours=0", "log.retention.hours=0: log.retention.ms must be unlimited"),
        (
            "group.consumer.max.heartbeat.interval.ms=4999",
            "group.consumer.max.heartbeat.interval.ms must be greater than or equal to "
            "group.consumer.min.heartbeat.interval.ms",
        ),
        (
            "group.share.session.timeout.ms=44999",
            "group.share.session.timeout.ms must be greater than or equal to "
            "group.share.min.session.timeout.ms",
        ),
        (
            "group.streams.assignment.interval.ms=15001",
            "group.streams.assignment.interval.ms must be less than or equal to "
            "group.streams.max.assignment.interval.ms",
        ),
        (
            "group.consumer.min.session.timeout.ms=1\ngroup.consumer.session.timeout.ms=5000",
            "group.consumer.heartbeat.interval.ms must be less than "
            "group.consumer.session.timeout.ms",
        ),
        (
            "group.streams.num.standby.replicas=3",
            "group.streams.num.standby.replicas must be less than or equal to "
            "group.streams.max.standby.replicas",
        ),
        (
            "group.share.max.delivery.count.limit=5\ngroup.share.delivery.count.limit=6",
            "group.share.max.delivery.count.limit must be greater than or equal to "
            "group.share.delivery.count.limit",
        ),
        (
            "group.share.min.delivery.count.limit=5\ngroup.share.delivery.count.limit=4",
            "group.share.delivery.count.limit must be greater than or equal to "
            "group.share.min.delivery.count.limit",
        ),
        (
            "group.share.partition.max.record.locks=4001",
            "group.share.max.partition.max.record.locks must be greater than or equal to "
            "group.share.partition.max.record.locks",
        ),
        (
            "group.share.min.partition.max.record.locks=500\n"
            "group.share.partition.max.record.locks=499",
            "group.share.partition.max.record.locks must be greater than or equal to "
            "group.share.min.partition.max.record.locks",
        ),
        (
            "group.share.record.lock.duration.ms=14999",
            "group.share.record.lock.duration.ms must be greater than or equal to "
            "group.share.min.record.lock.duration.ms",
        ),
        (
            "group.share.record.lock.duration.ms=60001",
            "group.share.max.record.lock.duration.ms must be greater than or equal to "
            "group.share.record.lock.duration.ms",
        ),
        (
            "group.share.max.share.sessions=199",
            "group.share.max.share.sessions must be greater than or equal to group.share.max.size",
        ),
        ("group.consumer.assignors=uniform,a.B", "Class a.B cannot be found"),
        ("metadata.log.segment.bytes=1024", "Value must be at least 8388608"),
        (
            "log.dirs=/a,/b\ncordoned.log.dirs=/b,/c,/d",
            "server.properties:9: cordoned.log.dirs=/b,/c,/d: All entries in cordoned.log.dirs "
            "must be present in log.dirs or log.dir. Missing entries : /c, /d",
        ),
        (
            "log.dirs=/a,/b\ncordoned.log.dirs=*,/a",
            "When cordoned.log.dirs is set to *, it must not contain other values",
        ),
    ],
)
def test_a_wrong_value_names_file_line_key_and_reason(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(of_file(line + "\n"), {})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "log.cleaner.threads=2\nlog.cleaner.dedupe.buffer.size=2097154",
        "replica.socket.timeout.ms=500\nreplica.lag.time.max.ms=500",
        "queued.max.request.bytes=104857600",
        "queued.max.request.bytes=0",
        "queued.max.request.bytes=-1",
        "socket.request.max.bytes=2000000000",
        "max.connections.per.ip=0\nmax.connections.per.ip.overrides=h:1",
        "max.connections.per.ip.overrides=127.0.0.1:0 , ::1:+5,[::2]:6, h_x-y.z:2147483647,",
        "connections.max.idle.ms=101",
        "connections.max.idle.ms=-1",
        "offsets.topic.compression.codec=4",
        "log.cleaner.min.compaction.lag.ms=2\nlog.cleaner.max.compaction.lag.ms=2",
        "log.flush.interval.ms=0\nlog.flush.scheduler.interval.ms=-1",
        "group.coordinator.rebalance.protocols=classic",
        "controller.quorum.auto.join.enable=true",
        "broker.id=7",
        "controller.quorum.voters=7@CONTROLLER://h:1",
    ],
)
def test_settings_at_the_edge_of_what_others_allow_are_taken(line: str) -> None:
    """`KafkaConfig.validateValues` of release 4.3.1."""
    assert load_config(of_file(line + "\n"), {}).node_id == 7


@pytest.mark.parametrize(
    "line",
    [
        "log.flush.interval.ms=-1",
        "log.cleaner.min.compaction.lag.ms=2\nlog.cleaner.max.compaction.lag.ms=1",
    ],
)
def test_a_controller_alone_has_no_logs_of_topics(line: str) -> None:
    """`LogManager.apply` checks these; a controller has none."""
    text = f"process.roles=controller\nlisteners=CONTROLLER://h:1\n{line}\n"
    assert load_config(of_file(text), {}).roles == ("controller",)


BROKER = """\
process.roles=broker
node.id=101
controller.listener.names=CONTROLLER,OTHER
listeners=PLAINTEXT://127.0.0.1:0
controller.quorum.voters=7@h:1,8@h:2
log.dirs=/a
"""


def test_a_node_that_is_only_a_broker_listens_for_clients_alone() -> None:
    config = load_config(settings_of_file(BROKER, "broker.properties"), {})
    assert config.roles == ("broker",)
    assert config.is_broker
    assert not config.is_controller
    assert [each.name for each in config.all_listeners] == ["PLAINTEXT"]
    assert config.voters == ((7, "h", 1), (8, "h", 2))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("node.id=7", "node.id 7 is among the voters, and this node is only a broker"),
        ("controller.quorum.voters=", "bootstrap.servers is not set: the quorum cannot be found"),
        ("controller.quorum.auto.join.enable=true", "only a controller can join the quorum"),
        ("controller.listener.names=", "Configuration must not be empty"),
        (
            "listeners=PLAINTEXT://:1,OTHER://:2",
            "controller.listener.names=CONTROLLER,OTHER: OTHER is in listeners, and this node is",
        ),
        ("controller.listener.names=PLAINTEXT", "PLAINTEXT is in listeners, and this node is"),
        ("listeners=CONTROLLER://:1", "CONTROLLER is in listeners, and this node is only"),
        (
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names=CONTROLLER,OTHER: OTHER has no security protocol",
        ),
        (
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,"
            "CONTROLLER:SASL_PLAINTEXT",
            "sasl.mechanism.controller.protocol is not set: listener CONTROLLER cannot be dialled",
        ),
    ],
)
def test_a_broker_alone_is_refused_what_kafka_refuses_it(line: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(settings_of_file(BROKER + line, "broker.properties"), {})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "my.properties: process.roles is not set: a role is required"),
        ("process.roles=controller", "my.properties: node.id is not set: a node id of 0 or more"),
        (
            "process.roles=controller\nnode.id=1",
            "my.properties: controller.quorum.bootstrap.servers is not set: the quorum cannot",
        ),
    ],
)
def test_a_missing_key_names_the_file_that_lacks_it(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(settings_of_file(text, "my.properties"), {}, file_name="my.properties")
    assert str(caught.value).startswith(message)


def test_a_node_without_a_directory_is_refused() -> None:
    """KafkaConfig of 4.3.1: log.dirs is a list that is not empty."""
    text = COMBINED.replace("log.dirs=/a, /b", "log.dirs=")
    with pytest.raises(ConfigError, match=r"log\.dirs=: Configuration must not be empty"):
        load_config(settings_of_file(text, "server.properties"), {})


def test_what_is_advertised_may_differ_from_what_is_bound() -> None:
    more = "listeners=PLAINTEXT://0.0.0.0:0,CONTROLLER://:1\nadvertised.listeners=PLAINTEXT://kafka.example:29092\n"
    (listener,) = load_config(of_file(more), {}).with_ports({"PLAINTEXT": 40123}).listeners
    assert listener == Listener("PLAINTEXT", "0.0.0.0", 40123, "kafka.example", 29092)


@pytest.mark.parametrize(
    "more",
    [
        "listeners=PLAINTEXT://:9092,CONTROLLER://127.0.0.1:1\n",
        "listeners=PLAINTEXT://0.0.0.0:9092,CONTROLLER://127.0.0.1:1\n"
        "advertised.listeners=PLAINTEXT://:9092\n",
    ],
)
def test_a_listener_without_a_host_advertises_the_machines_name(more: str) -> None:
    config = load_config(of_file(more), {}, host_name=lambda: "box.example")
    assert config.listeners == (Listener("PLAINTEXT", "0.0.0.0", 9092, "box.example", 9092),)
    assert config.controller_listeners[0].advertised_host == "127.0.0.1"


def test_a_free_port_is_advertised_once_it_is_known() -> None:
    (listener,) = (
        load_config(None, {}, [("listeners", Setting("PLAINTEXT://127.0.0.1:0", "--listen"))])
        .with_ports({"PLAINTEXT": 40123})
        .listeners
    )
    assert listener.advertised_port == 40123


CONTROLLER = """\
process.roles=controller
node.id=2
controller.listener.names=CONTROLLER, SECOND
listeners=SECOND://:19094,CONTROLLER://127.0.0.1:0
advertised.listeners=SECOND://inside.example:7
controller.quorum.bootstrap.servers=a.example:1, [::1]:2
controller.quorum.auto.join.enable=true
log.dirs=/a
"""


def test_a_node_that_is_only_a_controller_listens_for_its_peers_alone() -> None:
    config = load_config(settings_of_file(CONTROLLER, "controller.properties"), {})
    assert config.roles == ("controller",)
    assert not config.is_broker
    assert config.listeners == ()
    assert [each.name for each in config.controller_listeners] == ["CONTROLLER", "SECOND"]
    bound = config.with_ports({"CONTROLLER": 40123, "SECOND": 19094})
    assert bound.controller_listener == Listener(
        "CONTROLLER", "127.0.0.1", 40123, "127.0.0.1", 40123
    )
    assert bound.all_listeners[1] == Listener("SECOND", "0.0.0.0", 19094, "inside.example", 7)
    assert bound.bootstrap_servers == ((-1, "a.example", 1), (-1, "::1", 2))
    assert bound.voters == ()


@pytest.mark.parametrize(("text", "roles"), [("*", "broker,controller"), ("/x", "controller")])
def test_cordoned_directories_are_checked_on_brokers_only(text: str, roles: str) -> None:
    """`KafkaConfig.validateValues` of release 4.3.1."""
    lines = f"process.roles={roles}\nlog.dirs=/a,/b\ncordoned.log.dirs={text}\n"
    if roles == "controller":
        lines += "listeners=CONTROLLER://127.0.0.1:1\n"
    assert load_config(of_file(lines), {}).settings.strings("cordoned.log.dirs") == (text,)


def test_static_voters_are_read_with_their_addresses() -> None:
    config = load_config(of_file("controller.quorum.voters=7@h:1, 8@[::1]:2\n"), {})
    assert config.voters == ((7, "h", 1), (8, "::1", 2))


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", ""])
@pytest.mark.parametrize(
    ("voters", "address"), [("7@h:9,8@i:9", ("h", 9)), ("", ("box.example", 19_093))]
)
def test_controllers_may_listen_on_all_addresses(
    host: str, voters: str, address: tuple[str, int]
) -> None:
    """`KafkaConfig.effectiveAdvertisedControllerListeners`: the voter's address, or a name."""
    more = f"listeners=PLAINTEXT://127.0.0.1:19092,CONTROLLER://{host}:19093\n"
    more += f"controller.quorum.voters={voters}\ncontroller.quorum.bootstrap.servers=i:9\n"
    config = load_config(of_file(more), {}, host_name=lambda: "box.example")
    assert config.controller_listener is not None
    assert config.controller_listener.port == 19_093
    listener = config.controller_listener
    assert (listener.advertised_host, listener.advertised_port) == address


def test_a_controller_may_join_by_bootstrap_servers_beside_voters() -> None:
    """The voters count until the quorum is dynamic; then it finds its leader by the servers."""
    more = "controller.quorum.bootstrap.servers=h:65535\ncontroller.quorum.auto.join.enable=true\n"
    config = load_config(of_file(more), {})
    assert config.bootstrap_servers == ((-1, "h", 65_535),)
    assert config.voters == ((7, "127.0.0.1", 19093),)


def test_the_listen_option_leaves_the_controllers_listener() -> None:
    more = "advertised.listeners=PLAINTEXT://outside:1,CONTROLLER://inside:2\n"
    option = ("listeners", Setting("PLAINTEXT://127.0.0.1:0", "--listen"))
    config = load_config(of_file(more), {}, [option])
    assert [each.port for each in config.all_listeners] == [0, 19093]
    assert [each.advertised_host for each in config.all_listeners] == ["127.0.0.1", "inside"]


@pytest.mark.parametrize(
    "names",
    [
        "inter.broker.listener.name=A",
        "security.inter.broker.protocol=SSL",
        "early.start.listeners=A",
    ],
)
def test_the_listen_option_replaces_what_the_file_says_about_its_listeners(names: str) -> None:
    protocols = "A:SSL,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    more = f"listener.security.protocol.map={protocols}\n{names}\n"
    option = ("listeners", Setting("PLAINTEXT://127.0.0.1:0", "--listen"))
    assert load_config(of_file(more), {}, [option]).listeners[0].name == "PLAINTEXT"
    with pytest.raises(ConfigError, match=f"{names}: "):
        load_config(of_file(more), {})


def _authorizer(**values: str) -> object:
    keys = {"authorizer.class.name": STANDARD_AUTHORIZER} | {
        key.replace("_", "."): value for key, value in values.items()
    }
    settings = [(key, Setting(value, "test")) for key, value in keys.items()]
    return load_config(None, {}, settings).authorizer


def test_the_authorizers_keys_are_read_as_its_class_reads_them() -> None:
    """Users are split at semicolons; only "true", in any case, allows without entries."""
    assert load_config(None, {}).authorizer is None
    assert _authorizer() == (frozenset(), False)
    users = _authorizer(
        super_users="User:a; User:CN=b,O=c;;", allow_everyone_if_no_acl_found="TRUE"
    )
    assert users == (frozenset({"User:a", "User:CN=b,O=c"}), True)
    assert _authorizer(allow_everyone_if_no_acl_found="yes") == (frozenset(), False)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("authorizer.class.name", "org.example.Mine", f"only {STANDARD_AUTHORIZER} can be used"),
        ("super.users", "root", "'root' is not of the form Type:Name"),
    ],
)
def test_an_authorizer_that_cannot_be_had_stops_the_start(key: str, value: str, words: str) -> None:
    """SEC-ACL-01: never a node that seems to be protected."""
    values = {"authorizer.class.name": STANDARD_AUTHORIZER} | {key: value}
    settings = [(name, Setting(text, "test")) for name, text in values.items()]
    with pytest.raises(ConfigError) as caught:
        load_config(None, {}, settings)
    assert words in str(caught.value)

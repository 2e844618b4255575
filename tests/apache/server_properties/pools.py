"""What entries of a server.properties are drawn from: four nodes that start, texts, keys."""

from typing import Final

from kraft_wire.settings.broker import BROKER_KEYS

__all__ = [
    "BLANK",
    "BOOLEANS",
    "DOUBLES",
    "NODES",
    "NOT_DRAWN",
    "NUMBERS",
    "STRINGS",
    "TEXTS",
    "TOGETHER",
]

_COMBINED: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "log.dirs": "/a,/b",
}
_FOUND: Final = _COMBINED | {
    "controller.quorum.voters": "",
    "controller.quorum.bootstrap.servers": "localhost:9093",
}
_BROKER: Final = _COMBINED | {
    "process.roles": "broker",
    "listeners": "PLAINTEXT://:9092",
    "controller.quorum.voters": "7@controller.example:9093",
}
_CONTROLLER: Final = _COMBINED | {
    "process.roles": "controller",
    "listeners": "CONTROLLER://:9093",
}
NODES: Final = (_COMBINED, _FOUND, _BROKER, _CONTROLLER)

_LISTENERS: Final = (
    *("", "PLAINTEXT://:9092", "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"),
    *("CONTROLLER://:9093", "PLAINTEXT://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093"),
    *("plaintext://h:1,Controller://h:2", "PLAINTEXT://h:1,CONTROLLER://h:1"),
    *("PLAINTEXT://[::1]:9092,CONTROLLER://:9093", "PLAINTEXT://:0,CONTROLLER://:0"),
    *("PLAINTEXT://127.0.0.1:5,CONTROLLER://[::1]:5", "PLAINTEXT://a:1,PLAINTEXT://b:2"),
    *("PLAINTEXT://h:1,A://h:2,CONTROLLER://h:3", "PLAINTEXT://h:99999,CONTROLLER://h:2"),
    *("PLAINTEXT://h:-1,CONTROLLER://h:2", "PLAINTEXT://h,CONTROLLER://h:2", "PLAINTEXT:h:1"),
    *("PLAINTEXT://h_x:1,CONTROLLER://h-y:2", "PLAINTEXT://h h:1,CONTROLLER://h:2"),
    *("PLAINTEXT://:9092,,CONTROLLER://:9093", " PLAINTEXT://:9092 , CONTROLLER://:9093 "),
    *("PLAINTEXT://:09092,CONTROLLER://:9093", "PLAINTEXT:///:9092,CONTROLLER://:9093"),
    *("PLAINTEXT://[fe80::1%eth0]:1,CONTROLLER://h:2", "A_B-c://h:1,CONTROLLER://h:2"),
    *("PLAINTEXT://::1:9092,CONTROLLER://:9093", "PLAINTEXT://h:1,SSL://h:2,CONTROLLER://h:3"),
)
_ADVERTISED: Final = (
    *("", "PLAINTEXT://h:1", "PLAINTEXT://h:1,CONTROLLER://h:2", "PLAINTEXT://0.0.0.0:1"),
    *("PLAINTEXT://:1", "CONTROLLER://h:2", "OTHER://h:1", "PLAINTEXT://h:1,PLAINTEXT://h:2"),
    *("plaintext://h:1", "PLAINTEXT://h:0", "PLAINTEXT://h:-1", "PLAINTEXT://[::]:1"),
    *("PLAINTEXT://h:1,A://h:1", "CONTROLLER://0.0.0.0:2,PLAINTEXT://h:1", "PLAINTEXT://h:70000"),
)
_NAMES: Final = (
    *("", "CONTROLLER", "CONTROLLER,A", "A,CONTROLLER", "PLAINTEXT", "A"),
    *("CONTROLLER,CONTROLLER", "CONTROLLER,,A", " CONTROLLER ", "CONTROLLER,PLAINTEXT", "SSL"),
)
_MAPS: Final = (
    *("", "PLAINTEXT:PLAINTEXT", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"),
    *("controller:plaintext,plaintext:PLAINTEXT", "CONTROLLER:PLAINTEXT,PLAINTEXT:NONE"),
    *("A:PLAINTEXT,CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT", "CONTROLLER", "CONTROLLER:"),
    *("CONTROLLER:PLAINTEXT,,PLAINTEXT:PLAINTEXT", ":PLAINTEXT", "CONTROLLER:PLAINTEXT,"),
    *("CONTROLLER:PLAINTEXT,controller:PLAINTEXT,PLAINTEXT:PLAINTEXT",),
    *("CONTROLLER : PLAINTEXT , PLAINTEXT : PLAINTEXT", "CONTROLLER:trace,PLAINTEXT:PLAINTEXT"),
)
_QUORUMS: Final = (
    *("", "1@h:9093", "1@h:9093,2@i:9093", "1@h:9093,1@i:9093", "7@h:9093", "1@h:0", "1@h:99999"),
    *("1@h", "h:9093", "x@h:9093", "-1@h:9093", "1@0.0.0.0:9093", "1@[::1]:9093", "1@::1:9093"),
    *("1@h:9093,,2@i:9093", "01@h:9093", "1@@h:9093", "1@h:9093@x", "1@h_x:9093", "+1@h:1"),
    *("1@h:9093,", "1@PLAINTEXT://h:9093", "1@h h:9093", "1@h:+9093", "2147483648@h:1"),
)
_SERVERS: Final = (
    *("", "h:9093", "h:9093,i:9093", "h", "h:", ":9093", "h:0", "h:99999", "[::1]:9093"),
    *("h:9093,,i:9093", "::1:9093", "h_x:9093", "CONTROLLER://h:9093", "h:-1", "h:x", "h:9093,"),
)
_BETWEEN: Final = ("", "PLAINTEXT", "plaintext", "CONTROLLER", "A", "SSL", "TRACE", " PLAINTEXT ")
TEXTS: Final = {
    "listeners": _LISTENERS,
    "advertised.listeners": _ADVERTISED,
    "controller.listener.names": _NAMES,
    "early.start.listeners": _NAMES,
    "listener.security.protocol.map": _MAPS,
    "controller.quorum.voters": _QUORUMS,
    "controller.quorum.bootstrap.servers": _SERVERS,
    "inter.broker.listener.name": _BETWEEN,
    "security.inter.broker.protocol": _BETWEEN,
    "process.roles": (
        *("", "broker", "controller", "controller,broker", "broker,broker", "Broker", "broker,x"),
        *("broker,,controller", " broker , controller ", ","),
    ),
    "max.connections.per.ip.overrides": (
        *("", "h:1", "127.0.0.1:5,[::1]:6", "h:x", "h", ":1", "h:-1", "h:1,", "h:1,h:2", "h h:1"),
        *("127.0.0.1:5 , ::1:6", "h:99999999999", "h:1,,i:2", "h/x:1", "h_x:1"),
    ),
    "log.dirs": ("", "/a", "/a,/b", "/a,/a", "/a,,/b", " /a , /b ", ","),
    "log.dir": ("", "/a", "/a,/b", "/c"),
    "cordoned.log.dirs": ("", "*", "/a", "/a,/b", "/x", "*,/a", "/a,/x", "/a,,/b", "/a/"),
    "metadata.log.dir": ("", "/a", "/a/", "/c", "/b"),
    "group.coordinator.rebalance.protocols": (
        *("classic", "CLASSIC,consumer", "consumer", "classic,x", "", "classic,share,streams"),
        *("Classic", "classic,,consumer", "classic,unknown", "classic,classic"),
    ),
    "group.consumer.assignors": (
        *("uniform", "range", "uniform,range", "", "x", "uniform,uniform", "Uniform"),
        "range,,uniform",
        "org.apache.kafka.coordinator.group.assignor.RangeAssignor,range",
    ),
    "group.share.assignors": ("simple", "", "x", "simple,simple", "uniform", "Simple"),
    "group.consumer.migration.policy": (
        *("", "bidirectional", "UPGRADE", "Downgrade", "disabled", "none", "up"),
    ),
    "log.cleanup.policy": (
        *("", "delete", "compact", "compact,delete", "delete,delete", "DELETE", "delete,,compact"),
        *("none", "delete , compact", "x"),
    ),
    "broker.rack": ("", "r", " r "),
    "sasl.enabled.mechanisms": ("", "PLAIN", "GSSAPI,PLAIN", "plain", "PLAIN,,GSSAPI"),
    "super.users": ("", "User:a", "User:a;User:b", "a", "User:a;;User:b", "User:", ":a", "a:b:c"),
}
"""Values of keys whose text has a grammar of its own."""
BLANK: Final = ("", " ", "\t")
NUMBERS: Final = (
    *("0", "1", "-1", "-2", "2", "7", "+5", " 9 ", "1000", "1048576", "1048577", "2147483647"),
    *("2147483648", "-2147483648", "9223372036854775807", "9223372036854775808", "1.0", "0x10"),
    *("1e3", "", "x", "1_000", "00012", "\u0661", "1L", "-0", "--1", "1,000", "NaN"),
)
DOUBLES: Final = (
    *("0", "1", "0.5", "-0.1", "1.1", "1e-3", ".5", "5.", "NaN", "Infinity", "1d", "0x1p1"),
    *("", "x"),
    *("-0.0", "1E400", "1f", "+0.25", "0,5", "1e", "0.1234567890123456789", "1e-7", "123456789.5"),
)
BOOLEANS: Final = ("true", "false", "TRUE", "False", "yes", "1", "", " true ", "t")
STRINGS: Final = (
    *("", "x", " x ", "gzip", "GZIP", "producer", "CreateTime", "LogAppendTime", "none"),
)
TOGETHER: Final = (
    ("listeners", "advertised.listeners", "controller.listener.names", "process.roles",
     "listener.security.protocol.map", "inter.broker.listener.name",
     "security.inter.broker.protocol", "early.start.listeners"),
    ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "process.roles",
     "controller.quorum.auto.join.enable", "node.id", "broker.id"),
    ("log.dirs", "log.dir", "cordoned.log.dirs"),
    ("log.roll.ms", "log.roll.hours", "log.roll.jitter.ms", "log.roll.jitter.hours",
     "log.retention.ms", "log.retention.minutes", "log.retention.hours"),
    ("log.cleaner.dedupe.buffer.size", "log.cleaner.threads"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms", "replica.lag.time.max.ms"),
    ("queued.max.request.bytes", "socket.request.max.bytes"),
    ("max.connections.per.ip", "max.connections.per.ip.overrides"),
    ("connection.failed.authentication.delay.ms", "connections.max.idle.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("log.segment.bytes", "log.index.size.max.bytes", "log.index.interval.bytes",
     "message.max.bytes"),
    ("log.message.timestamp.type", "log.message.timestamp.before.max.ms",
     "log.message.timestamp.after.max.ms"),
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms", "log.flush.interval.messages"),
    *(tuple(name for name in sorted(BROKER_KEYS) if name.startswith(f"group.{kind}."))
      for kind in ("consumer", "share", "streams")),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms", "group.max.size",
     "group.initial.rebalance.delay.ms"),
    ("transaction.max.timeout.ms", "transaction.state.log.min.isr",
     "transaction.state.log.replication.factor", "transaction.state.log.num.partitions",
     "transaction.state.log.segment.bytes", "transactional.id.expiration.ms"),
    ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
)  # fmt: skip
"""Keys that are checked against each other."""
NOT_DRAWN: Final = ("remote.", "ssl.", "sasl.", "metric", "kafka.metrics", "security.providers")
"""Keys of classes of Java and of tiered storage; tests/settings compares their definitions."""

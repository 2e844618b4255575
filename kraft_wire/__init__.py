"""Apache Kafka's wire protocol, log format and KRaft quorum in Python.

Read docs/ARCHITECTURE.md first. Packages, from the bottom up: `model` (value types), `wire`
(codecs), `settings` (configuration keys), `storage`, `broker` and `controller` (side by side),
`node`, `server` and `sim` (the two hosts), `testing` and `cli`.
"""

__all__: list[str] = []

"""Client authentication: Kafka's client keys, and SASL from the client's side.

Used by all that open connections: the command line, the links between nodes, and the conformance
suite, which shares no code with the servers that it tests. Imports only `keystores`, `properties`
and the codecs of `wire`.
"""

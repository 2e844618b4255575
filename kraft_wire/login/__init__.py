"""How a client shows who it is: Kafka's client keys, and SASL from the client's side.

Whoever dials uses it: the command line, the links between nodes, and the conformance suite, which
shares no code with the servers that it judges. Imports only the codecs of `wire`.
"""

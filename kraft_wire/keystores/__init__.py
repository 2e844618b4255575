"""Key and trust stores in Kafka's three forms: PEM, JKS and PKCS12.

Used by listeners, by the node's own links and by clients. Nothing here writes a key to a disk.
"""

"""Key and trust stores in Kafka's three forms: PEM, JKS and PKCS12.

Used by listeners, by the node's own links and by clients. Beside them key sets of signed tokens,
and the HTTP exchange that fetches these and tokens. Nothing here writes a key to a disk.
"""

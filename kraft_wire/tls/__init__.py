"""TLS by OpenSSL: contexts out of settings, and the transport of a connection that is encrypted."""

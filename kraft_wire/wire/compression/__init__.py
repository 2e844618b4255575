"""Codecs of record batches, with a cap on what they decompress to."""

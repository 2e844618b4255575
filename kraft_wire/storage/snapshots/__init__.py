"""Snapshots of the metadata log (KIP-630): contents, files, and their cleaning."""

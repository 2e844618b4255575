"""Record batches (KIP-98) and the older message formats: read, checked, built, patched."""

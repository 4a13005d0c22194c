"""Renew a catalog from the live indexes: pages, METADATA, device code; ``run.refresh`` does it."""

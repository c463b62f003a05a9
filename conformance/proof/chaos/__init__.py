"""Proof on networks that fail: a seeded proxy before a service, and the whole suite run through it."""

"""Proof on networks that fail: a seeded proxy in front of a service, and the whole suite run through it."""

"""Faults on a served reference: what operators see of each."""

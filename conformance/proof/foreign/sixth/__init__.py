"""Faults under measurement."""

"""Specification conformance test suite for the Project Automation API."""

__version__ = "0.1.0"

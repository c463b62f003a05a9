"""Gives pytest the suite's options, actors and fixtures; the work is in the package."""

pytest_plugins = ["conformance.runner.plugin"]

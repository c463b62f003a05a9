"""Runs the suite: the pytest plugin with its options, collection, session and progress display."""

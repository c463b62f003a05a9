"""Calls over HTTP: a client with one deadline for each call, limits of size, retries, pace and redaction."""

"""The version table at work: timeline, upgrade readiness and recorded traffic."""

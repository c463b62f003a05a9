"""Foreign faults in the integrations of projects."""

"""Foreign faults in the approval rules of merge requests."""

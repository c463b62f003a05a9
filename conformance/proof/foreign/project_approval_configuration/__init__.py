"""Foreign faults in the approval configuration of projects."""

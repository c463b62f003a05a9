"""Foreign faults in the approval rules of projects."""

"""Foreign faults in the approval settings of groups and projects."""

"""Foreign faults in approving: approve, unapprove, reset, the approval status and the approval state."""

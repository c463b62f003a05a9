"""Foreign faults in the job token scope: the limit and both allowlists."""

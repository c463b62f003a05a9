"""The results of a run as plain data: plan, record and verdicts."""

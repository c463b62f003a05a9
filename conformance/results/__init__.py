"""What a run came to, as plain data: plan, record and verdicts."""

"""Foreign faults in code completion: completions, their limit, and the check whether they are enabled."""

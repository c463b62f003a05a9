"""Foreign faults that a developer of such a service could well make, of all areas."""

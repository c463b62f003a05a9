"""Foreign faults in the export of a group's relations."""

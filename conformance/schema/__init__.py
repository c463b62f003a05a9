"""Validates responses against the schemas of the contract, and names the requirement at each place."""

"""The target under test: its profile, and the proof that it can be tested."""

from conformance.target.names import ACTORS, FIXTURES
from conformance.target.profile import Actor, Fixture, Limits, MissingFieldError, Profile
from conformance.target.profile_file import load_profile

__all__ = ["ACTORS", "FIXTURES", "Actor", "Fixture", "Limits", "MissingFieldError", "Profile", "load_profile"]

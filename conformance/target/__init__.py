"""Who is under test: the profile of a target, and proof that it can be tested."""

from conformance.target.profile import (
    ACTORS,
    FIXTURES,
    Actor,
    Fixture,
    Limits,
    MissingFieldError,
    Profile,
    load_profile,
)

__all__ = ["ACTORS", "FIXTURES", "Actor", "Fixture", "Limits", "MissingFieldError", "Profile", "load_profile"]

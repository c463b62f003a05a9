"""What can go wrong, in the words of the domain. `http.error_response` turns it into a response."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from conformance.reference.choices import Choices


class ApiError(Exception):
    """A refusal. `message` is for people; `parameter` names what was wrong, if it was one thing.

    `choice` is the field of Choices that holds the status code of this kind of refusal.
    """

    choice: ClassVar[str]
    prefix: ClassVar[str] = ""

    def __init__(self, message: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message or self.prefix
        self.parameter = parameter

    def status(self, choices: Choices) -> int:
        """Return the HTTP status of this refusal under the given choices."""
        code: int = getattr(choices, self.choice)
        return code

    def headers(self, choices: Choices) -> dict[str, str]:  # noqa: ARG002 - subclasses use the choices
        """Return response headers that belong to this refusal."""
        return {}


class UnauthorizedError(ApiError):
    """No token, or one that names nobody."""

    choice = "anonymous_code"
    prefix = "401 Unauthorized"


class ForbiddenError(ApiError):
    """The caller is known and may see the subject, but may not do this."""

    choice = "forbidden_code"
    prefix = "403 Forbidden"


class HiddenError(ApiError):
    """The subject exists and the caller may not see it; the message is that of NotFoundError."""

    choice = "hidden_code"


class NotFoundError(ApiError):
    """What the request names does not exist."""

    choice = "missing_code"
    prefix = "404 Not found"


class InvalidError(ApiError):
    """A parameter is missing or cannot be read as its type."""

    choice = "invalid_code"


class RejectedError(ApiError):
    """The request can be read, and breaks a rule of the domain."""

    choice = "rejected_code"


class RepeatedError(ApiError):
    """The request asks for what is already so, and the choices refuse that."""

    choice = "repeated_code"


class NoRouteError(ApiError):
    """No such endpoint, or none at this version."""

    choice = "absent_route_code"
    prefix = "404 Not Found"


class WrongMethodError(ApiError):
    """The path exists, the method does not. `allowed` are the methods that do."""

    choice = "wrong_method_code"
    prefix = "405 Not Allowed"

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__()
        self.allowed = allowed

    def headers(self, choices: Choices) -> dict[str, str]:  # noqa: ARG002 - signature of the base class
        """Return the Allow header."""
        return {"allow": ", ".join(self.allowed)}


class TooLargeError(ApiError):
    """The body is larger than the service reads."""

    choice = "too_large_code"
    prefix = "413 Request Entity Too Large"


class UnsupportedMediaError(ApiError):
    """The body is of a content type that the service does not read."""

    choice = "unsupported_media_code"
    prefix = "The provided content-type is not supported."


class ThrottledError(ApiError):
    """Too many requests."""

    choice = "throttled_code"
    prefix = "This endpoint has been requested too many times. Try again later."

    def headers(self, choices: Choices) -> dict[str, str]:
        """Return the Retry-After header, in seconds, when the choices send one."""
        return {} if choices.retry_after_seconds is None else {"retry-after": str(choices.retry_after_seconds)}


class StatedError(ApiError):
    """A refusal whose status the specification itself states.

    Specification: Errors.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code

    def status(self, choices: Choices) -> int:  # noqa: ARG002 - the specification decides, not the choices
        """Return the stated HTTP status."""
        return self.code


def not_found(what: str) -> NotFoundError:
    """Return the refusal for something that does not exist, e.g. "Project"."""
    return NotFoundError(f"404 {what} Not Found")


def hidden(what: str) -> HiddenError:
    """Return the refusal for something that the caller may not see; it reads like `not_found`."""
    return HiddenError(f"404 {what} Not Found")

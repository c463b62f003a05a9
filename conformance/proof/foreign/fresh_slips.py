"""Small bugs that were first put on another implementation, of other words and other choices, and not seen there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.proof.foreign.registry import foreign, handling

if TYPE_CHECKING:
    from conformance.reference import Service

_COMPLETIONS = "POST /code_suggestions/completions"


# The allowed values of intent are the same, whichever way the answer is sent.
@foreign("forms of what is sent", "Code completion: intent and stream")
def streamed_completions_take_any_intent(service: Service) -> None:
    """A completion in chunks is begun before intent has been looked at."""

    @handling(service, _COMPLETIONS)
    def _(handler: Any, request: Any) -> Any:
        values = request.parameters._values
        if values.get("stream") is True:
            request.parameters._values = {name: value for name, value in values.items() if name != "intent"}
        return handler(request)

"""What integrations show of the values that parameters were set to: the right one, a wrong one, or part of one."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from conformance.results.text import as_json
from conformance.suite.arrange.integrations import (
    is_channel,
    older_path,
    set_up,
    settings_of,
    shown,
    slug_of,
)
from conformance.suite.expectations import Answer, Caller, Path, given, must, must_settle
from conformance.suite.shown_records import values_under

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.target import Fixture

_UNUSUAL = "R&D's Prüfung"
#: With a character that older encodings cannot hold: services that use one leave it out, or end the text before it.
_RARE = f"{_UNUSUAL} 🚀 fertig"
#: Longer than a usual column of a database table.
_LONG = "conformance-" * 25
#: So many characters of a text may be shown instead of it.
_FEW = 16
#: Commas separate its items, so that anything else in their place makes one item of several.
_SEPARATED_BY_COMMAS = "restrict_to_branch"


def must_not_show_another(
    caller: Caller, path: Path, integration: Fixture, taken: tuple[str, Any], earlier: list[Any]
) -> None:
    """Expect that an accepted value is the one that is shown, if any; `taken` is the parameter's name and value.

    Secrets may be masked or left out. So a text is surely wrong only if it is an older value, the value of another
    parameter, the same text in other case unless it is a channel, or of a list the first item, or the items without
    their commas; or blank, if the profile says that it is shown. A flag that is off may be shown as nothing, and the
    certificate check of the integration that always checks may stay true.
    """
    slug, (name, value) = slug_of(integration), taken

    def is_recased(other: Any) -> bool:
        """Tell whether a text comes back in upper or lower case; host names, and channels of some chats, have none."""
        has_no_case = is_channel(name) or (isinstance(value, str) and bool({":", "@"} & {*value}))
        are_texts = isinstance(other, str) and isinstance(value, str) and not has_no_case
        return are_texts and other != value and other.casefold() == value.casefold()

    is_list = isinstance(value, str) and "," in value
    parts = [value.partition(",")[0]] if is_list else []
    if is_list and name == _SEPARATED_BY_COMMAS:
        parts += [value.replace(",", separator) for separator in ("", " ", ";")]

    def others() -> list[Any]:
        found = shown(caller, path, slug, name)
        # The form of a shown setting is open: a number may be told as text.
        as_sent = [value, str(value)]
        tolerated = [
            *as_sent,
            *([True] if name == "enable_ssl_verification" else []),
            *([] if value else [None]),
        ]
        stale = [*earlier, *parts]
        others = [other for other in found if other in stale or isinstance(value, bool | int) or is_recased(other)]
        if value and not any(found) and is_known_to_be_shown(integration, name):
            others = found
        is_shown = any(one in found for one in as_sent)  # beside it, a default of its kind may be shown
        return [] if is_shown else [other for other in others if other not in tolerated]

    must_settle(
        lambda: not others(), f"{name} = {as_json(value)}, if it is shown", lambda: f"{name} = {as_json(others())}"
    )


def is_known_to_be_shown(integration: Fixture, name: str) -> bool:
    """Tell whether the profile says that a text is shown: it lists what is not, as `provision` has seen it.

    `provision` lists what an integration requires even if it is not shown.
    """
    optional = {*(integration.get("parameters") or ())} - {*(integration.get("required") or ())}
    hidden = integration.get("never_shown")
    return name == integration.get("distinctive_name") or (hidden is not None and name in optional - {*hidden})


def must_take(
    caller: Caller, path: Path, integration: Fixture, sent: tuple[str, Any], answer: Answer, *others: Any
) -> None:
    """Expect that a parameter is taken; left open if only a value that the suite made up is refused, and another taken.

    A service may ask somebody whether a channel or a port exists, and refuse an integration of which no event is on.
    """
    name, value = sent
    is_made_up = not isinstance(value, bool) and settings_of(integration).get(name) != value
    tells_nothing = value is False and [*(integration.get("events") or ())] == [name]
    if answer.exchange.is_refusal and (is_made_up or tells_nothing):
        is_taken = any(set_up(caller, path, integration, **{name: other}).is_served for other in others)
        again = set_up(caller, path, integration, **{name: value}) if is_taken else answer
        only_so = is_taken and again.exchange.is_refusal
        given(not only_so, f"{slug_of(integration)} takes another {name} than {as_json(value)}")
    answer.must_be_served()


def must_not_garble(caller: Caller, path: Path, integration: Fixture, names: Sequence[str]) -> None:
    """Expect that an unusual text, and a long one, are not shown garbled or cut.

    A service may refuse either, and need not show what it accepted.
    """

    def is_accepted(text: str) -> bool:
        return set_up(caller, path, integration, **dict.fromkeys(names, text)).is_served

    for texts in ((_RARE, _UNUSUAL), (_LONG,)):
        text = next(filter(is_accepted, texts), None)
        if text is None:
            continue
        settings = caller.get(path / slug_of(integration))
        for name in names if settings.is_served else ():
            shown = {value for value in values_under(name, settings.json) if isinstance(value, str)}
            is_spoiled = _is_cut if text is _LONG else _is_garbled
            spoiled = sorted(value for value in shown if is_spoiled(value, text))
            must(not spoiled, f"{name} = {text}, if it is shown", f"{name} = {', '.join(spoiled)}", settings.exchange)


def must_not_break_by_the_older_name(
    caller: Caller, project: Fixture, integration: Fixture, odd: Mapping[str, Any]
) -> None:
    """Send wrong values by the older name of the operation too, if the version has that name."""
    older = older_path(caller, project)
    if older:
        answer = caller.put(Path(f"{older}/{slug_of(integration)}"), {**settings_of(integration), **odd})
        caller.follow(answer).must_not_break()


def must_keep_whole_addresses(caller: Caller, path: Path, integration: Fixture, names: Sequence[str]) -> None:
    """Expect that an address which is taken is not shown without its query or its fragment; it may be refused."""
    texts = {name: str(settings_of(integration).get(name)) for name in names}
    hidden = integration.get("never_shown") or ()
    longer = {
        name: f"{text.rstrip('/')}/conformance?{name}=1"
        for name, text in texts.items()
        if text.startswith("http") and not {"?", "#"} & {*text} and name not in hidden
    }
    sent = {name: f"{text}#top" for name, text in longer.items()}
    if not sent or not set_up(caller, path, integration, **sent).is_served:
        return
    for name, text in longer.items():
        found = shown(caller, path, slug_of(integration), name)
        cut = [value for value in found if value in (text, text.partition("?")[0])]
        must(not cut, f"{name} = {sent[name]}, if it is shown", f"{name} = {', '.join(cut)}")


def _is_garbled(shown: str, text: str) -> bool:
    """Tell whether a text is shown with all its ASCII letters, but changed between them or after them.

    A mask shows no such letters. A service may add to the text, and may write `ü` as one character or as two.
    """
    if text == _RARE and shown.strip() == _UNUSUAL:  # it ends before the character that was not kept
        return True
    if unicodedata.normalize("NFC", text) in unicodedata.normalize("NFC", shown):
        return False
    left = iter(shown)
    return all(letter in left for letter in text if letter.isascii() and letter.isalpha())


def _is_cut(shown: str, text: str) -> bool:
    """Tell whether a text ends too early; a few characters may stand for a secret."""
    return len(text) > len(shown) > _FEW and text.startswith(shown)

"""What this server can do differently where the specification is silent: all of it is legal, except `zero-pages`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CHOICES: Mapping[str, str] = {
    # records and lists
    "ages": "every record says how old it is, and is older each time",
    "cost": "every record holds another one, which says what the answer cost",
    "request-ids": "every record has the number of the request",
    "served-at": "every record says when it was served",
    "uptime": "every record says for how long the server has run",
    "quiet": "the state of approvals does not say when it was read",
    "namespaces-apart": "namespaces have other numbers than their groups",
    "no-ldap": "groups have nothing of a directory of users",
    "odd-times": "moments in unusual forms of ISO 8601",
    "floats": "whole numbers with a point and a zero",
    "odd-json": "letters as escapes, and blanks wherever JSON may have them",
    "random-order": "lists without pages come in a new order each time",
    "links": "lists with pages have a link that is none to another page",
    "empty-404": "the first page of an empty list is past its end",
    "zero-pages": "pages begin with number 0, and not with the 1 that any client begins with",
    # connections and headers
    "close": "every answer ends its connection",
    "idle-close": "a connection without a request ends after 30 ms",
    "chunked": "bodies come in chunks",
    "compressed": "bodies are compressed for whoever takes that",
    "retry-after": "every refusal has a Retry-After",
    "throttle": "more than 250 calls of a user in five seconds are refused with 429",
    # codes
    "odd-2xx": "a success without a body has one, a picture, where the text leaves the code open",
    "odd-4xx": "unusual codes for refusals, where the text leaves the code open",
    "services-redirect": "integrations below /services are found by a redirect",
    "blank-integrations": "an integration that was never set up is shown as inactive",
    # accepted values
    "strict-query": "parameters of the query that the text does not name are refused",
    "strict-unknown": "properties of a body that the text does not name are refused",
    # roles
    "closed": "rules of projects are for maintainers, merge requests for developers",
    "groups-refused": "only administrators make groups",
    "powerless-admin": "an administrator has no role but those of a member",
    "strict-approvers": "who is in no rule may not approve",
    # what operations do
    "cascade-rules": "with a rule of a project go those that were made from it",
    "events-on": "a new integration reports all that it can",
    "failing-relation": "the export of one relation fails",
    "keeps-lists": "lists of a rule that are not sent stay as they are",
    "left-max": "an approval counts for every rule that waits for one",
    "linked-events": "an event of an integration brings the confidential one along",
    "no-choices": "a completion never has choices",
    "no-configuration": "the approval configuration is gone for all, reading included",
    "no-default-rules": "groups and projects begin without a rule",
    "numbers-by-place": "each project and merge request numbers its own rules, and takes free numbers again",
    "no-lower": "a merge request may not ask for fewer approvals than the rule of its project",
    "no-version": "the version is not told",
    "replace-integrations": "what is not sent of an integration is forgotten",
    "overrides-later": "a merge request takes rules of its own only once the settings of its project were changed so",
    "passwords-first": "whoever approves has to send a password, until the settings of the project are changed",
    "rules-wipe-approvals": "a changed rule takes away the approvals that were given",
    "sha-last": "the commit that is approved is looked at last",
    "slow-export": "an export takes three seconds",
    "slow-reset": "approvals are reset after a second and a half",
}

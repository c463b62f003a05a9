"""The dimensions that foreign faults cross, each with its meaning."""

from __future__ import annotations

from types import MappingProxyType

CALLER_AND_FORM = "caller x form of id x operation"
CALLER_AND_VALUE = "caller x value"
LEVEL = "level x id of another level"
NEIGHBOUR = "value x neighbour of the right value"
FORM_SENT = "forms of what is sent"
EXPORTED = "content of exports"
STORY = "numbers and texts that follow from the story"
MOMENT_OR_ADDRESS = "moments and addresses that are none"
COUNT = "none, one or two values"
OLDER = "the older of two"
AGAIN = "again, by another caller, after an undo"
SIDE_EFFECT = "write x everything that must stay"
REFUSED = "refusal x everything that must stay"
NOTHING_DONE = "what arranges or undoes, and does nothing"
RESETS = "settings and their resets"
AT_ONCE = "two write at once"
PAGES = "pages and totals"
OVER_TIME = "status over time"
VERSIONS = "version table"

#: All of them, each with its meaning.
DIMENSIONS = MappingProxyType(
    {
        CALLER_AND_FORM: "one role, one form of a path or one page at which an operation goes wrong",
        CALLER_AND_VALUE: "a value that is taken from one role only, or looked at before another one",
        LEVEL: "what belongs to a group, a project or a merge request is reached by another one",
        NEIGHBOUR: "a value that is almost right, empty, null or cut is taken for it",
        FORM_SENT: "the same in the query, in a form, in JSON, alone or beside other parameters",
        EXPORTED: "what the files and batches of an export hold, and how they are named",
        STORY: "what an answer says, by all that happened before",
        MOMENT_OR_ADDRESS: "dates that no calendar has, addresses that lead nowhere",
        COUNT: "lists that are empty, or have more than one entry",
        OLDER: "of two things, the one that was made first",
        AGAIN: "what held once, and later does not",
        SIDE_EFFECT: "a call that was served changes something else as well",
        REFUSED: "a call that was refused, or served in part, changes something",
        NOTHING_DONE: "an answer says that it is done, and nothing was",
        RESETS: "each flag of each kind, switched on, off and on again",
        AT_ONCE: "two calls at the same time, of which one is lost",
        PAGES: "how long pages are, and what the headers count",
        OVER_TIME: "states in the order in which they follow each other",
        VERSIONS: "what comes or goes with a version",
    }
)

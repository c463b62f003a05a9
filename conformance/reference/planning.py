"""What a group owns besides projects: labels, milestones and boards, which a relations export carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.reference.store import Table

if TYPE_CHECKING:
    from conformance.reference.identity import Group
    from conformance.reference.store import Store


@dataclass(frozen=True, slots=True)
class Label:
    """A label of a group."""

    id: int
    group_id: int
    title: str
    color: str


@dataclass(frozen=True, slots=True)
class Milestone:
    """A milestone of a group."""

    id: int
    group_id: int
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class Board:
    """An issue board of a group."""

    id: int
    group_id: int
    name: str


class Planning:
    """The labels, milestones and boards of all groups."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.labels: Table[int, Label] = Table(store)
        self.milestones: Table[int, Milestone] = Table(store)
        self.boards: Table[int, Board] = Table(store)

    def add_label(self, group: Group, title: str, color: str) -> Label:
        """Give a group a label; `color` is "#" and six hexadecimal digits."""
        label = Label(self._store.next_id("labels"), group.id, title, color)
        self.labels[label.id] = label
        return label

    def add_milestone(self, group: Group, title: str, description: str) -> Milestone:
        """Give a group a milestone."""
        milestone = Milestone(self._store.next_id("milestones"), group.id, title, description)
        self.milestones[milestone.id] = milestone
        return milestone

    def add_board(self, group: Group, name: str) -> Board:
        """Give a group an issue board."""
        board = Board(self._store.next_id("boards"), group.id, name)
        self.boards[board.id] = board
        return board

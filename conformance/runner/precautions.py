"""Makes sure that nothing a run changes stays: marks its worlds, keeps their ledgers, and restores what it changed."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from conformance.errors import TargetError, UsageError
from conformance.http.client import Client, TargetGoneError
from conformance.results.recorder import is_being_written, unwritable
from conformance.runner.profiles import DEFAULT_PROFILE
from conformance.target.ledger import Content, Ledger, UnwrittenError, begun
from conformance.target.machine import forget_ledgers, open_ledgers, remember_ledgers
from conformance.target.marker import Marker
from conformance.target.profile import changed_places
from conformance.target.provisioning.calls import Calls, by_http
from conformance.target.provisioning.files import Made
from conformance.target.provisioning.own_groups import NEEDING, OwnGroups
from conformance.target.restoring import put_back

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from conformance.http.exchange import Call
    from conformance.results.plan import Plan
    from conformance.suite.context import Run
    from conformance.target import Profile

_NAME = "ledger"
#: How long a new object may take until it is in its final state.
_PATIENCE_SECONDS = 5
#: The signals that ask a process to end.
ENDING = (signal.SIGTERM, signal.SIGHUP)
#: How many worlds are marked, or restored, at once.
_WORLDS_AT_ONCE = 16


def ledgers_in(folder: Path) -> list[Path]:
    """Return the ledgers of a run, one for each of its worlds."""
    return sorted(folder.glob(f"{_NAME}*.jsonl"))


@dataclass
class Precautions:
    """The ledgers and marks of a run, as far as this process handles them."""

    profile: Profile
    """The profile, with all of its worlds."""
    folder: Path
    told: dict[str, Any]
    """What the ledger's header says about the run: its name as `run`, and more."""
    _ledger: Ledger | None = None
    _client: Client | None = None
    _marks: list[Marker] = field(default_factory=list)
    _begun: list[Path] = field(default_factory=list)
    """The ledgers of this run."""

    @classmethod
    def of(cls, profile: Profile, file: Path | None, folder: Path, run: str) -> Self:
        """Return the precautions of a run, given its name, the file of its profile and its output folder."""
        told = {
            "run": run,
            "base_url": profile.redacted()["base_url"],
            "profile": str((file or DEFAULT_PROFILE).absolute()),
            "since": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        return cls(profile, folder, told)

    def end_earlier(self) -> None:
        """Restore what a killed run left in this folder and remove its marks, because this run continues it."""
        restored(self.folder, self.profile)
        released(self.folder, self.profile)

    def begin(self, worlds: Collection[int], *, restores: bool) -> Iterator[str]:
        """Mark the worlds, restore what earlier runs left open, and begin the ledgers; yield messages about it.

        Raise TargetError when another run uses one of the worlds (`release` removes the marks on the others), or when a
        ledger would overwrite one that is still needed.
        """
        with ThreadPoolExecutor(_at_once(self.profile)) as pool:
            yield from filter(None, pool.map(self._marked, worlds))
        remembered = {**self._open_here(self.told["base_url"]), **open_ledgers(self.profile.base_url)}
        for run, written_to in remembered.items():
            folder = _moved_to(written_to, run)
            goes_on = folder.resolve() != self.folder.resolve() and is_being_written(folder)
            if goes_on or not _concerns(folder, worlds):
                continue  # with a profile of other places; or another shard, which uses other worlds
            if not _is_about(folder, self.profile):
                yield f"Run {run} did not end, and its profile names other places: conformance restore {folder}"
            elif not restores:
                yield f"What run {run} changed has not been put back (--no-restore): see {folder}."
            elif not ledgers_in(folder):
                yield f"Run {run} did not end, and its ledger in {folder} is gone: what it changed stays."
                forget_ledgers(self.profile.base_url, run)
            else:
                left = restored(folder, self.profile)
                but = f", except for {'; '.join(left)}" if left else ""
                yield f"Run {run} did not end. What it changed has been put back first{but}."
        needed = self._open_here()
        if needed:
            raise TargetError(
                f"What run {next(iter(needed))} changed has not been put back, and only {self.folder} says what it is. "
                f"Name another folder with --out, or put it back: conformance restore {self.folder}"
            )
        try:
            for number in worlds:
                told = {**self.told, "world": number, "places": _places(self.profile, number)}
                self._begun.append(begun(self._file(number), told))
        except OSError as error:
            raise unwritable(self.folder, error) from error
        remember_ledgers(self.profile.base_url, self.told["run"], self.folder)

    def _marked(self, world: int) -> str | None:
        mark = Marker(self.profile.in_world(world), self.told["run"])
        self._marks.append(mark)  # before, because the target may go away when it has the mark
        try:
            return mark.claim()
        except TargetGoneError as error:
            raise TargetError(str(error)) from error

    def _open_here(self, base_url: str | None = None) -> dict[str, Path]:
        """Return the runs, of one target or of any, that wrote to this folder and whose changes are not restored."""
        found = {}
        for file in ledgers_in(self.folder):
            with suppress(UsageError):  # it says nothing that could be put back
                content = Content.read(file)
                if not content.is_settled and base_url in {None, content.header["base_url"]}:
                    found[str(content.header["run"])] = self.folder
        return found

    def keep_ledger(self, run: Run, world: int, plan: Plan | None = None) -> None:
        """From now on, write into a ledger what the calls of a run change in a world.

        When the plan has tests that create objects which no call can delete, the run gets groups for them before the
        first test, and removes these at the end. Not now: a worker may start before the run has marked its worlds.
        """
        settings = run.profile.client_settings(1, run=self.told["run"])
        self._client = Client(settings, beside=True, paced_with=run.client)
        self._ledger = Ledger(self._file(world), run.profile, self._client, run.validator.operation_of)
        run.client.before_write(partial(_before_write, self._ledger, self._client, run))
        run.client.on_exchange(self._ledger.after)
        if plan is not None and any(plan.tests[name].areas & NEEDING for name in plan.selected):
            calls = Calls(by_http(self._client), Made(), _PATIENCE_SECONDS)
            own = OwnGroups(run.profile, calls, self.told["run"], self._ledger.makes_group)
            run.before_tests = partial(_see_to, own, run)

    def _file(self, world: int) -> Path:
        return self.folder / (f"{_NAME}-{world}.jsonl" if world else f"{_NAME}.jsonl")

    def close(self) -> None:
        """Stop writing to the ledger."""
        if self._ledger is not None:
            self._ledger.close()
        if self._client is not None:
            self._client.close()

    def release(self) -> None:
        """Remove the marks of this run; an interrupt ends that, and nothing else that is still to be told."""
        # A mark that stays belongs to a process that has ended, so a later run takes it over.
        with suppress(KeyboardInterrupt), ThreadPoolExecutor(_at_once(self.profile)) as pool:
            marks, self._marks = self._marks, []
            for done in [pool.submit(mark.release) for mark in marks]:
                done.result()

    def put_back(self) -> tuple[str, ...]:
        """Restore what this run changed in all of its worlds; return what is left."""
        self.close()
        gone = [str(file) for file in self._begun if not file.exists()]
        lost = [f"all that it changed: {', '.join(gone)} was deleted meanwhile, and only that said what it was"]
        return (*restored(self.folder, self.profile), *(lost if gone else ()))


def _before_write(ledger: Ledger, client: Client, run: Run, call: Call) -> None:
    """Let the ledger read for the running test: what goes unanswered is asked for again by a later test only."""
    client.test = run.client.test
    ledger.before(call)


def _see_to(own: OwnGroups, run: Run) -> None:
    """Make groups of its own for a run, again if the target has lost them, as one that was reset has."""
    retries = run.client.retries
    if not own.were_tried or own.are_lost(retries.counts.total() + retries.unanswered.total()):
        with suppress(UnwrittenError):  # it is raised again for the first change, in a test that can say so
            run.include(own.profile())


def _moved_to(folder: Path, run: str) -> Path:
    """Return the present folder of a run's ledger, because folders of reports are renamed; the old one if not found."""
    beside = (file.parent for file in sorted(folder.parent.glob(f"*/{_NAME}*.jsonl")))
    return next((place for place in (folder, *beside) if _has_ledger_of(place, run)), folder)


def _has_ledger_of(folder: Path, run: str) -> bool:
    for file in ledgers_in(folder):
        with suppress(UsageError):
            if Content.read(file).header["run"] == run:
                return True
    return False


def _concerns(folder: Path, worlds: Collection[int]) -> bool:
    """Tell whether the open ledger of a folder concerns, or may concern, one of these worlds."""
    with suppress(UsageError):
        files = ledgers_in(folder)
        return not files or any(Content.read(file).header["world"] in worlds for file in files)
    return True


def _places(profile: Profile, world: int) -> list[str]:
    return sorted({place for place, _ in changed_places(profile.in_world(world).fixtures)})


def _is_about(folder: Path, profile: Profile) -> bool:
    """Tell whether the ledgers of a folder are, or may be, about a project or group that this profile names as well.

    Several teams may each have a profile of one service: with the tokens of one, what the other changed is hidden.
    """
    ours = {place for number in range(profile.number_of_worlds) for place in _places(profile, number)}
    named: set[str] = set()
    for file in ledgers_in(folder):
        with suppress(UsageError):
            named |= set(map(str, Content.read(file).header.get("places") or ()))
    return not named or bool(named & ours)


def when_terminated(act: Callable[..., None]) -> Callable[[], object]:
    """Call `act` on SIGTERM and SIGHUP, unless they have a handler; return a function that resets them.

    SIGHUP comes when the terminal is closed; under nohup it is ignored, and stays ignored.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    free = [number for number in ENDING if in_main_thread and signal.getsignal(number) is signal.SIG_DFL]
    for number in free:
        signal.signal(number, act)

    def end_again() -> None:
        for number in free:
            signal.signal(number, signal.SIG_DFL)

    return end_again


@contextmanager
def undisturbed() -> Iterator[Callable[[], AbstractContextManager[None]]]:
    """Ignore interrupts while the context lasts, as far as this thread can; return a context in which they count."""
    if threading.current_thread() is not threading.main_thread():
        yield nullcontext
        return
    usual = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *ENDING)}

    @contextmanager
    def heard() -> Iterator[None]:
        try:
            _handle(usual)
            yield
        finally:
            _handle(dict.fromkeys(usual, signal.SIG_IGN))

    try:
        yield heard
    finally:  # but for what got another handler meanwhile, such as that of a service which ends with its run
        _handle({number: usual[number] for number in usual if signal.getsignal(number) is signal.SIG_IGN})


def _handle(handlers: Mapping[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def restored(folder: Path, profile: Profile) -> tuple[str, ...]:
    """Restore what the ledgers of a folder list, unless that was done; return what is left or could not be restored.

    The first interrupt ends it, with a message that says how to continue.
    """
    is_over, files = threading.Event(), ledgers_in(folder)
    ends: list[Callable[[], None]] = []
    with ThreadPoolExecutor(_at_once(profile)) as pool:
        worlds = [pool.submit(_put_back, file, profile, is_over.is_set, ends.append) for file in files]
        try:
            wait(worlds)
        except KeyboardInterrupt:
            is_over.set()
            for end_waiting in ends:
                end_waiting()
    left: list[str] = []
    open_files: dict[str, list[str]] = {}
    for file, world in zip(files, worlds, strict=True):
        stays, problem = world.result()
        left += stays
        if problem is not None:
            open_files.setdefault(problem, []).append(str(file))
    for why, names in open_files.items():
        left.append(
            f"everything in {', '.join(names)}: {why.rstrip('.')}. Put it back later: conformance restore {folder}"
        )
    if not open_files:
        for run in {Content.read(file).header["run"] for file in files}:
            forget_ledgers(profile.base_url, run)
    return tuple(left)


def _put_back(
    file: Path, profile: Profile, is_over: Callable[[], bool], hand_over: Callable[[Callable[[], None]], None]
) -> tuple[tuple[str, ...], str | None]:
    """Restore what the ledger of one world lists; return what is left, and the reason if the ledger stays open."""
    if is_over():
        return (), "interrupted"
    try:
        content = Content.read(file)
        if content.is_settled:  # whoever changes anything after that means it
            return content.left, None
        world = profile.in_world(content.header["world"])
        return put_back(Content.read(file, world.named_secrets()), world, is_over, hand_over), None
    except (TargetGoneError, KeyboardInterrupt, OSError, UsageError) as error:
        return (), str(error) or "interrupted"


def _at_once(profile: Profile) -> int:
    """Return how many worlds of a target are handled at once: one by one where the rate of calls is limited."""
    return 1 if profile.limits.requests_per_second else _WORLDS_AT_ONCE


def released(folder: Path, profile: Profile) -> None:
    """Remove the marks that the run of a folder left on its worlds."""
    for file in ledgers_in(folder):
        with suppress(UsageError):  # one that cannot be read is told of where it is to be put back
            header = Content.read(file).header
            Marker(profile.in_world(header["world"]), header["run"]).release()

"""A snapshot brought into a catalog: names for tables that lie in it already.

It can be done again after it was cut off: what is there as the snapshot has it is left alone.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

from mooring.directory.layout import table_dir
from mooring.directory.manifest import MANIFEST_DIR
from mooring.errors import (
    CatalogFormatError,
    ConflictError,
    InvalidInputError,
    InvalidTableStateError,
    MooringError,
    NamespaceAlreadyExistsError,
    NamespaceNotFoundError,
    NotFoundError,
    StoreUnsafeError,
    TableAlreadyExistsError,
    TableNotFoundError,
    UnsupportedError,
)
from mooring.exchange.snapshot import NamespaceEntry, directory_of, relative
from mooring.identifiers import ROOT, ObjectId, check_composed, quote
from mooring.namespace.api import CreateMode
from mooring.namespace.locations import check_location, is_outside
from mooring.namespace.properties import PROTECTED, check_properties

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from mooring.catalog import Catalog
    from mooring.exchange.snapshot import Snapshot, TableEntry

    Act = Callable[[], object]

__all__ = ["Outcome", "Result", "bring_in"]

_AT_ONCE = 32
_NO_PROPERTIES = "properties are left out: the target is a plain directory, which keeps none"


class Result(StrEnum):
    """What became of an object."""

    CREATED = "created"
    REGISTERED = "registered"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    EXISTS = "exists"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an import did, or in a dry run would do, with one object.

    Attributes:
        entry: The object.
        result: What became of it.
        reason: Why it was skipped or failed.
        error: The failure, where it is one.
    """

    entry: NamespaceEntry | TableEntry
    result: Result
    reason: str | None = None
    error: MooringError | None = None

    @property
    def name(self) -> str:
        """The object's identifier for people."""
        return str(ObjectId(self.entry.id))


@dataclass(frozen=True, slots=True)
class _Step:
    """What is to be done with one object, and what that makes of it."""

    result: Result
    reason: str | None = None
    acts: Sequence[Act] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """A live table of the target."""

    location: str
    properties: Mapping[str, str]


def bring_in(
    catalog: Catalog,
    snapshot: Snapshot,
    mode: CreateMode = CreateMode.CREATE,
    *,
    dry_run: bool = False,
) -> Iterator[Outcome]:
    """Make the namespaces of a snapshot and register its tables, telling of each.

    An object that is there as the snapshot has it is left alone in every mode.

    Args:
        catalog: The target.
        snapshot: What it should name.
        mode: What to do where an object is there and differs: ``create`` fails it, ``exist_ok``
            leaves it, ``overwrite`` changes it; a table that is elsewhere goes to the trash.
        dry_run: Only tell, change nothing.

    Raises:
        UnsupportedError: this kind of catalog cannot be filled.
        ServiceUnavailableError: the store did not answer; what was told of is done.
    """
    target = _Target(catalog, mode, dry_run=dry_run)
    yield from map(target.bring_in, snapshot.namespaces)
    # Tables do not depend on each other, and changes that wait together share a commit.
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="mooring-import") as pool:
        yield from pool.map(target.bring_in, snapshot.tables)


class _Target:
    """The catalog that is filled: what it had at the start, and what was done since."""

    def __init__(self, catalog: Catalog, mode: CreateMode, *, dry_run: bool) -> None:
        self._catalog = catalog
        self._dry_run = dry_run
        self._directory = directory = directory_of(catalog)
        self._mode = mode
        self._is_plain = directory.levels == 1
        self._root = directory.store.location("")
        self._namespaces = dict(directory.describe_namespaces())
        self._tables = {
            info.id: _Known(relative(info.location, directory), info.properties)
            for info in directory.describe_tables()
        }
        self._unrecorded = set(directory.unrecorded_tables())
        self._present = set(directory.store.list_dir("").directories)

    def bring_in(self, entry: NamespaceEntry | TableEntry) -> Outcome:
        try:
            step = self._plan(entry)
            if not self._dry_run:
                for act in step.acts:
                    act()
        except NotFoundError as exc:
            return Outcome(entry, Result.SKIPPED, str(exc))
        except (StoreUnsafeError, CatalogFormatError):
            raise
        except (
            ConflictError,
            InvalidInputError,
            InvalidTableStateError,
            UnsupportedError,
        ) as exc:
            return Outcome(entry, Result.FAILED, str(exc), exc)
        if step.result is Result.CREATED:
            self._namespaces[ObjectId(entry.id)] = entry.properties
        return Outcome(entry, step.result, step.reason)

    def _plan(self, entry: NamespaceEntry | TableEntry) -> _Step:
        name = ObjectId.of(entry.id)
        check_properties(entry.properties)
        space = name if isinstance(entry, NamespaceEntry) else name.parent
        if self._is_plain and not space.is_root:
            return _Step(Result.SKIPPED, "the target is a plain directory, without namespaces")
        if not self._is_plain:
            name.format()  # a name that holds the delimiter would be another's
        if isinstance(entry, NamespaceEntry):
            return self._plan_namespace(name, entry.properties)
        return self._plan_table(name, entry)

    # -- namespaces ----------------------------------------------------------------------------

    def _plan_namespace(self, name: ObjectId, wanted: Mapping[str, str]) -> _Step:
        if name.is_root:
            return self._plan_root(wanted)
        known = self._namespaces.get(name)
        if known is None:
            check_composed(name.name)
            if name in self._tables:
                msg = f"a table is named {quote(str(name))}"
                raise TableAlreadyExistsError(msg)
            self._require_namespace(name.parent)
            create = partial(self._catalog.create_namespace, name, wanted)
            return _Step(Result.CREATED, acts=[create])
        if not self._differs(known, wanted):
            return _Step(Result.UNCHANGED)
        if self._mode is CreateMode.EXIST_OK:
            return _Step(Result.EXISTS)
        if self._mode is CreateMode.CREATE:
            raise _conflict(f"namespace {quote(str(name))}", known, wanted)
        return self._update_namespace(name, known, wanted)

    def _plan_root(self, wanted: Mapping[str, str]) -> _Step:
        """Set properties of the root, which is always there: a key it lacks is free."""
        known = self._namespaces[ROOT]
        if not self._differs(known, wanted):
            return _Step(Result.UNCHANGED)
        if self._is_plain:
            return _Step(Result.SKIPPED, _NO_PROPERTIES)
        if self._mode is CreateMode.OVERWRITE:
            return self._update_namespace(ROOT, known, wanted)
        if any(known.get(key, value) != value for key, value in wanted.items()):
            if self._mode is CreateMode.EXIST_OK:
                return _Step(Result.EXISTS)
            raise _conflict("the root namespace", known, wanted)
        return self._update_namespace(ROOT, known, {**known, **wanted})

    def _update_namespace(
        self, name: ObjectId, known: Mapping[str, str], wanted: Mapping[str, str]
    ) -> _Step:
        update = partial(self._catalog.update_namespace, name, _updates(known, wanted))
        return _Step(Result.UPDATED, acts=[update])

    def _require_namespace(self, name: ObjectId) -> None:
        if name not in self._namespaces:
            msg = f"there is no namespace {quote(str(name))} in the target"
            raise NamespaceNotFoundError(msg)

    # -- tables --------------------------------------------------------------------------------

    def _plan_table(self, name: ObjectId, entry: TableEntry) -> _Step:
        if name.is_root:
            msg = "a table needs a name"
            raise InvalidInputError(msg)
        try:
            location = check_location(
                entry.location,
                self._root,
                self._directory.settings.allowed_locations,
                own=(MANIFEST_DIR,),
            )
        except InvalidInputError as exc:
            return _Step(Result.SKIPPED, str(exc))
        wanted, reason = entry.properties, None
        if self._is_plain and wanted.keys() - {PROTECTED}:
            wanted = {key: value for key, value in wanted.items() if key == PROTECTED}
            reason = _NO_PROPERTIES
        known = self._tables.get(name)
        # A table that only a listing finds has its name already, and gets its row.
        if known is None or (name in self._unrecorded and known.location == location):
            step = self._plan_new(name, location, wanted)
        else:
            step = self._plan_known(name, known, location, wanted)
        return replace(step, reason=reason)

    def _plan_new(self, name: ObjectId, location: str, wanted: Mapping[str, str]) -> _Step:
        if name in self._namespaces:
            msg = f"a namespace is named {quote(str(name))}"
            raise NamespaceAlreadyExistsError(msg)
        self._require_namespace(name.parent)
        return self._register(name, location, wanted, CreateMode.CREATE)

    def _plan_known(
        self, name: ObjectId, known: _Known, location: str, wanted: dict[str, str]
    ) -> _Step:
        shown = f"table {quote(str(name))}"
        if known.location != location:
            if self._mode is CreateMode.EXIST_OK:
                return _Step(Result.EXISTS)
            if self._mode is CreateMode.OVERWRITE:
                return self._register(name, location, wanted, CreateMode.OVERWRITE)
            msg = f"{shown} exists already, at {quote(known.location)}"
            raise TableAlreadyExistsError(msg)
        if self._mode is CreateMode.OVERWRITE and known.properties != wanted:
            set_all = partial(self._set, name, _updates(known.properties, wanted))
            return _Step(Result.UPDATED, acts=[set_all])
        # A root table is protected by a step of its own, which may have been cut off.
        unguarded = _is_own(name, location) and _lacks_protection(known.properties, wanted)
        rest = _without_protection(wanted) if unguarded else wanted
        if self._differs(known.properties, rest):
            if self._mode is CreateMode.EXIST_OK:
                return _Step(Result.EXISTS)
            raise _conflict(shown, known.properties, wanted)
        if unguarded:
            return _Step(Result.UPDATED, acts=[partial(self._catalog.protect_table, name)])
        return _Step(Result.UNCHANGED)

    def _register(
        self, name: ObjectId, location: str, wanted: Mapping[str, str], mode: CreateMode
    ) -> _Step:
        self._require_present(location)
        # The protection of a root table in its own directory is not kept with its properties.
        own = _is_own(name, location)
        properties = _without_protection(wanted) if own else wanted
        register = partial(
            self._catalog.register_table, name, location, mode=mode, properties=properties
        )
        known = self._tables.get(name)
        acts: list[Act] = [register]
        if own and _lacks_protection(known.properties if known else {}, wanted):
            acts.append(partial(self._catalog.protect_table, name))
        return _Step(Result.REGISTERED, acts=acts)

    def _require_present(self, location: str) -> None:
        if is_outside(location):
            return
        is_there = location.partition("/")[0] in self._present
        if is_there and "/" in location:
            is_there = self._directory.store.list_dir(location).exists
        if not is_there:
            msg = f"there is no table at {quote(location)} in the target"
            raise TableNotFoundError(msg)

    def _set(self, name: ObjectId, updates: Mapping[str, str | None]) -> None:
        if self._is_plain:
            self._catalog.protect_table(name, protected=updates.get(PROTECTED) == "true")
        else:
            self._catalog.update_table(name, updates)

    # -- small things --------------------------------------------------------------------------

    def _differs(self, known: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
        """Whether properties are not as wanted; only an overwrite minds those beyond that."""
        if self._mode is CreateMode.OVERWRITE:
            return known != wanted
        return any(known.get(key) != value for key, value in wanted.items())


def _is_own(name: ObjectId, location: str) -> bool:
    """Whether a root table lies in `<name>.lance`."""
    return name.level == 1 and location == table_dir(name.name)


def _lacks_protection(known: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return wanted.get(PROTECTED) == "true" and known.get(PROTECTED) != "true"


def _without_protection(properties: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in properties.items() if key != PROTECTED}


def _updates(known: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """Return what makes the known properties the wanted ones; None removes one."""
    updates: dict[str, str | None] = {key: None for key in known if key not in wanted}
    return updates | {key: value for key, value in wanted.items() if known.get(key) != value}


def _conflict(what: str, known: Mapping[str, str], wanted: Mapping[str, str]) -> ConflictError:
    keys = sorted(key for key, value in wanted.items() if known.get(key) != value)
    differs = ", ".join(quote(key) for key in keys)
    msg = f"{what} exists already, and differs in the properties {differs}"
    return ConflictError(msg)

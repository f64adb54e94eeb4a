"""Notes of outputs that were written and are not committed: a run that failed goes on from them.

A note lies where data lies that no object names: a vacuum takes notes and files alike once nobody
has written to them for long. It gives the id of the files up first, and then the note counts for
nothing; so does one whose files are gone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from mooring.changes.commits import WrittenChange, require_same
from mooring.changes.definition import Definition
from mooring.changes.objects import find_objects
from mooring.changes.parts import PartitionFile
from mooring.errors import ConcurrentModificationError
from mooring.metastore import DataFile, DeltaType, TableVersion
from mooring.metastore.layout import data_dir
from mooring.metastore.model import decode_object, encode_object
from mooring.pipelines.expectations import Checked

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.catalog import Catalog
    from mooring.changes.objects import ChangeObjects
    from mooring.metastore.transaction import Transaction
    from mooring.pipelines.definition import Output

__all__ = ["Finished", "Notes", "fits"]

_ANY = DeltaType.APPEND  # what the rows do is of no matter to whether they fit


@dataclass(frozen=True)
class Finished:
    """An output whose files are written.

    Attributes:
        label: The output.
        token: The id that its files were written under.
        table_id: The id of the table; None for one that the run makes.
        definition: What the table was.
        files: The files.
        rows: How many rows they have.
        checked: What was counted on the way.
        was_kept: Whether an earlier try wrote it.
    """

    label: str
    token: str
    table_id: str | None
    definition: Definition
    files: tuple[PartitionFile, ...]
    rows: int
    checked: tuple[Checked, ...] = ()
    was_kept: bool = False


def fits(table: ChangeObjects | None, written: Finished) -> bool:
    """Whether files were written for a table as it is, or for none where there is none."""
    if table is None:
        return written.table_id is None
    if written.table_id is None:
        return table.definition.to_version() == written.definition.to_version()
    if written.table_id != table.lasting_id:
        return False
    try:
        require_same(table, WrittenChange(table.id, written.definition, _ANY, written.files))
    except ConcurrentModificationError:
        return False
    return True


class _File(msgspec.Struct, frozen=True, array_like=True):
    values: tuple[str | int | float | bool | None, ...]
    file: DataFile


class _Note(msgspec.Struct, frozen=True, kw_only=True):
    work: str
    label: str
    token: str
    table_id: str | None
    definition: bytes
    files: tuple[_File, ...]
    rows: int
    checked: tuple[Checked, ...]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Note)


class Notes:
    """The notes of one run."""

    def __init__(self, catalog: Catalog, pipeline: str, run: str, work: str) -> None:
        """Know where they are.

        Args:
            catalog: The catalog.
            pipeline: The pipeline.
            run: The run.
            work: What makes rows the same: notes of other work count for nothing.
        """
        self._catalog = catalog
        self._store = catalog.metastore.store
        digest = hashlib.sha256(f"{pipeline}/{run}".encode()).hexdigest()[:32]
        self._directory = data_dir(f"run-{digest}")
        self._work = work

    def write(self, finished: Finished) -> None:
        """Note that an output is written; nobody ever changes the note."""
        version = finished.definition.to_version()
        note = _Note(
            work=self._work,
            label=finished.label,
            token=finished.token,
            table_id=finished.table_id,
            definition=encode_object(version),
            files=tuple(_File(one.values, one.file) for one in finished.files),
            rows=finished.rows,
            checked=finished.checked,
        )
        self._store.put_new(f"{self._directory}/{finished.token}", _encoder.encode(note))

    def read(self, outputs: Iterable[Output]) -> dict[str, Finished]:
        """Return what is written already of some outputs, and can be committed."""
        wanted = {one.label: one for one in outputs}
        view = self._catalog.metastore.begin()
        found: dict[str, Finished] = {}
        for meta in sorted(self._store.list_prefix(self._directory), key=lambda one: one.path):
            one = self._read_one(meta.path)
            if one is None or one.label not in wanted or not self._is_there(view, one):
                continue
            if fits(find_objects(view, self._catalog.identifier(wanted[one.label].table)), one):
                found.setdefault(one.label, one)
        return found

    def _read_one(self, path: str) -> Finished | None:
        body = self._store.get(path)
        try:
            note = _decoder.decode(body or b"")
        except msgspec.DecodeError:
            return None  # half of one: its writer was killed
        if note.work != self._work:
            return None
        version = decode_object(note.definition, path)
        if not isinstance(version, TableVersion):
            return None
        return Finished(
            note.label,
            note.token,
            note.table_id,
            Definition.from_version(version, note.label),
            tuple(PartitionFile(one.values, one.file) for one in note.files),
            note.rows,
            note.checked,
            was_kept=True,
        )

    def _is_there(self, view: Transaction, finished: Finished) -> bool:
        if view.timeline.is_aborted(finished.token):
            return False
        paths = {one.file.path for one in finished.files}
        return self._store.existing(sorted(paths)) == paths

    def delete(self) -> None:
        """Delete the notes of a run that is done."""
        self._store.delete_prefix(self._directory)

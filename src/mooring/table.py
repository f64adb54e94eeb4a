"""A table of a catalog as people use it from Python: its rows and everything around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    import pyarrow as pa
    from lance import LanceDataset

    from mooring.namespace.api import Backend, Change, TableInfo
    from mooring.tables.api import VersionRecord
    from mooring.tables.branches import Branches
    from mooring.tables.changes import Changed
    from mooring.tables.columns import Columns
    from mooring.tables.compaction import Compacted
    from mooring.tables.comparison import VersionDiff
    from mooring.tables.full_text import Text
    from mooring.tables.handle import TableHandle
    from mooring.tables.indexes import Indexes
    from mooring.tables.log import LogEntry
    from mooring.tables.stats import TableStats
    from mooring.tables.tags import Tags
    from mooring.tables.transactions import Transaction

__all__ = ["Table"]


class Table:
    """A located table. Every change of it is committed through the catalog."""

    def __init__(self, backend: Backend, info: TableInfo) -> None:
        """Hold a location; nothing is opened yet."""
        self._backend = backend
        self.info = info

    def __repr__(self) -> str:
        """Show the name."""
        return f"Table('{self.info.id}')"

    @property
    def name(self) -> str:
        """The table's own name."""
        return self.info.id.name

    @property
    def location(self) -> str:
        """Where the table is."""
        return self.info.location

    @property
    def handle(self) -> TableHandle:
        """The table as the functions of `mooring.tables` take it."""
        from mooring.namespace.located import locate  # imports lance

        return locate(self._backend, self.info.id, self.info)

    @property
    def columns(self) -> Columns:
        """The columns: add, alter, drop, backfill, and their metadata."""
        from mooring.tables.columns import Columns  # imports lance

        return Columns(self.handle)

    @property
    def indexes(self) -> Indexes:
        """The indexes: create, list, get, drop."""
        from mooring.tables.indexes import Indexes  # imports lance

        return Indexes(self.handle)

    # -- reading ---------------------------------------------------------------------------------

    def to_lance(
        self,
        version: int | None = None,
        *,
        tag: str | None = None,
        branch: str | None = None,
    ) -> LanceDataset:
        """Open the table with Lance, at a version, tag or branch if given.

        Where the catalog manages versions, what is written through the result is committed
        through the catalog.

        Raises:
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            TableBranchNotFoundError: there is no such branch.
        """
        from mooring.tables.handle import At

        at = At(version, tag, branch)
        if self.info.is_managed(self._backend):
            return self.handle.open_managed(at)
        return self.handle.open(at)

    def to_arrow(self, **scan: Any) -> pa.Table:  # noqa: ANN401  # Lance's own arguments
        """Read the table, or what `columns`, `filter`, `limit` and the like select of it."""
        with self.handle.reading() as dataset:
            return dataset.to_table(**scan)

    def query(
        self,
        columns: str | Sequence[str] | Mapping[str, str] | None = None,
        where: str | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        vector: object = None,
        vector_column: str | None = None,
        k: int | None = None,
        distance: str | None = None,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        ef: int | None = None,
        refine_factor: int | None = None,
        lower_bound: float | None = None,
        upper_bound: float | None = None,
        prefilter: bool = True,
        bypass_vector_index: bool = False,
        fast_search: bool = False,
        text: str | Mapping[str, Any] | Text | None = None,
        text_columns: str | Sequence[str] | None = None,
        with_row_id: bool = False,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> pa.RecordBatchReader:
        """Read rows by filter, by vector and by words, as a stream of batches.

        A search adds the column `_distance` or `_score`, by which the rows are ranked.

        Args:
            columns: A field's path, several, or names for the result with the SQL expression of
                each; all columns unless given.
            where: An SQL expression that holds for the rows.
            limit: At most so many rows.
            offset: So many rows are skipped.
            vector: Numbers, of which the nearest are looked for; several vectors are several
                searches, and `query_index` tells of which one a row is. In a column of lists of
                vectors they are one search.
            vector_column: In which column; found where there is one, or one called `vector`.
            k: How many of the nearest; `limit` or 10 unless given.
            distance: How it is measured: l2, cosine, dot or hamming; as the index does, or l2,
                unless given.
            nprobes: How many partitions of an index are searched, unless one of the next two is
                given.
            minimum_nprobes: At least so many.
            maximum_nprobes: At most so many.
            ef: How many candidates an HNSW index keeps.
            refine_factor: Of so many times more candidates the exact distance is computed.
            lower_bound: The least distance.
            upper_bound: Distances are below this.
            prefilter: Whether the filter applies before the nearest or best are taken; after it,
                fewer may be left.
            bypass_vector_index: Whether to compare with all vectors instead.
            fast_search: Whether to leave out rows that no index covers yet.
            text: Words, a query of `mooring.tables.full_text`, or one as the specification writes
                it, as in ``{"phrase": {"terms": "deep sea", "column": "title"}}``. With a vector,
                the nearest rows of those that match.
            text_columns: Where to look for words; where there is a full-text index unless given.
            with_row_id: Whether to return `_rowid`, too.
            version: At this version.
            tag: At this tag.
            branch: Of this branch.

        Raises:
            TableColumnNotFoundError: a column, or one in an expression, is not there.
            InvalidInputError: the filter, an expression or the search makes no sense.
            TableVersionNotFoundError: there is no such version.
            TableTagNotFoundError: there is no such tag.
            TableBranchNotFoundError: there is no such branch.
        """
        from mooring.tables.query import build_query, run

        query = build_query(
            columns,
            where,
            limit=limit,
            offset=offset,
            vector=vector,
            vector_column=vector_column,
            k=k,
            distance=distance,
            nprobes=nprobes,
            minimum_nprobes=minimum_nprobes,
            maximum_nprobes=maximum_nprobes,
            ef=ef,
            refine_factor=refine_factor,
            lower_bound=lower_bound,
            upper_bound=upper_bound,
            prefilter=prefilter,
            bypass_vector_index=bypass_vector_index,
            fast_search=fast_search,
            text=text,
            text_columns=text_columns,
            with_row_id=with_row_id,
            version=version,
            tag=tag,
            branch=branch,
        )
        return run(self.handle, query)

    def explain(self, *, verbose: bool = False, **query: Any) -> str:  # noqa: ANN401  # see query
        """Tell how Lance would answer a query; the arguments are those of ``query``."""
        from mooring.tables.query import build_query, explain

        asked = build_query(**{"prefilter": True, **query})
        return explain(self.handle, asked, verbose=verbose)

    def analyze(self, **query: Any) -> str:  # noqa: ANN401  # the arguments of query
        """Answer a query and tell what each step took; the arguments are those of ``query``."""
        from mooring.tables.query import analyze, build_query

        return analyze(self.handle, build_query(**{"prefilter": True, **query}))

    def count(
        self,
        where: str | None = None,
        *,
        version: int | None = None,
        tag: str | None = None,
        branch: str | None = None,
    ) -> int:
        """Count the rows, or those that a filter selects, at a version, tag or branch if given."""
        from mooring.tables.handle import At
        from mooring.tables.query import count

        return count(self.handle, where, At(version, tag, branch))

    @property
    def schema(self) -> pa.Schema:
        """The table's schema."""
        return self.handle.open().schema

    @property
    def version(self) -> int:
        """The newest version."""
        return int(self.handle.open().version)

    def versions(self, limit: int | None = None) -> list[VersionRecord]:
        """Return the versions, the newest first."""
        return self._backend.list_table_versions(self.info.id, limit=limit)

    def history(self) -> list[Change]:
        """Tell what happened to the table in the catalog, oldest first."""
        return self._backend.table_history(self.info.id)

    # -- rows --------------------------------------------------------------------------------------

    def insert(
        self,
        data: object,
        *,
        schema: pa.Schema | None = None,
        overwrite: bool = False,
        branch: str | None = None,
    ) -> Changed:
        """Append rows, or make them the table's only content.

        Args:
            data: An Arrow table, batch or reader, a data frame, or an iterable of batches or
                dictionaries.
            schema: The schema for rows that bring none; the table's own unless given.
            overwrite: Replace what is there.
            branch: Where to; main unless given.

        Raises:
            TableSchemaValidationError: the rows do not fit the table.
            ConcurrentModificationError: a conflicting change came first.
        """
        from mooring.namespace.located import insert_into
        from mooring.tables.rows import to_reader

        rows = to_reader(data, schema)
        return insert_into(
            self._backend,
            self.info.id,
            rows,
            overwrite=overwrite,
            branch=branch,
            known=self.info,
        )

    def merge(
        self,
        data: object,
        on: str | Sequence[str],
        *,
        update: bool = True,
        update_if: str | None = None,
        insert: bool = True,
        delete: bool = False,
        delete_if: str | None = None,
        branch: str | None = None,
    ) -> Changed:
        """Merge rows by a key: those that are there are updated, the others inserted.

        Args:
            data: The rows, as ``insert`` takes them.
            on: The columns by which rows are the same.
            update: Whether a row that is there takes the new values.
            update_if: Only where this holds, of ``source.`` and ``target.`` columns.
            insert: Whether a row that is not there is added.
            delete: Whether rows that the data lacks go.
            delete_if: Only those for which this holds.
            branch: Where to; main unless given.

        Raises:
            TableColumnNotFoundError: a key or condition names a column that is not there.
            InvalidInputError: a condition makes no sense, or two rows of the data are one.
        """
        from mooring.tables.changes import Merge, merge
        from mooring.tables.rows import to_reader

        how = Merge(
            on=(on,) if isinstance(on, str) else tuple(on),
            update=update,
            update_if=update_if,
            insert=insert,
            delete=delete,
            delete_if=delete_if,
        )
        return merge(self.handle, to_reader(data), how, branch=branch)

    def update(
        self, values: Mapping[str, str], where: str | None = None, *, branch: str | None = None
    ) -> Changed:
        """Set columns to SQL expressions, in all rows or in those that a filter selects."""
        from mooring.tables.changes import update

        return update(self.handle, values, where=where, branch=branch)

    def delete(self, where: str, *, branch: str | None = None) -> Changed:
        """Delete the rows that a filter selects."""
        from mooring.tables.changes import delete

        return delete(self.handle, where, branch=branch)

    def restore(self, version: int, *, branch: str | None = None) -> Changed:
        """Make the content of an older version the newest."""
        from mooring.tables.changes import restore

        return restore(self.handle, version, branch=branch)

    # -- what it consists of, and what was done to it --------------------------------------------

    @property
    def tags(self) -> Tags:
        """The tags: `table.tags.create("v1", 3)` names version 3."""
        from mooring.tables.tags import Tags

        return Tags(self.handle)

    @property
    def branches(self) -> Branches:
        """The branches: `table.branches.create("dev")` makes one from the newest version."""
        from mooring.tables.branches import Branches

        return Branches(self.handle)

    def stats(self, *, branch: str | None = None) -> TableStats:
        """Gather statistics: rows, bytes, fragments, files, versions, indexes."""
        from mooring.tables.stats import gather_stats

        return gather_stats(self.handle, branch)

    def log(self, limit: int | None = None, *, branch: str | None = None) -> list[LogEntry]:
        """Return versions, the newest first: what made them, by whom, and what is in them."""
        from mooring.tables.log import log

        return log(self.handle, limit, branch=branch)

    def diff(
        self, old: int | str, new: int | str | None = None, *, branch: str | None = None
    ) -> VersionDiff:
        """Say what differs between two versions: schema, rows, files, indexes.

        Args:
            old: A version, or a tag.
            new: Another; the newest unless given.
            branch: The versions' branch; main unless given. A tag knows its own.

        Raises:
            TableVersionNotFoundError: one of them is not there.
            TableTagNotFoundError: one of the tags is not there.
        """
        from mooring.tables.comparison import compare
        from mooring.tables.handle import At

        def find(which: int | str | None) -> At:
            return At(tag=which) if isinstance(which, str) else At(which, branch=branch)

        return compare(self.handle, find(old), find(new))

    def compact(
        self,
        *,
        older_than: timedelta | None = None,
        keep: int | None = None,
        branch: str | None = None,
        target_rows: int | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """Merge small fragments, drop deleted rows from files and, if wanted, old versions.

        Versions that tags name stay, and those that branches come from.

        Args:
            older_than: Delete versions that were made so long ago; none unless given.
            keep: Delete versions before the newest so many; none unless given.
            branch: The branch; main unless given.
            target_rows: How many rows a fragment is to hold; a million unless given.
            dry_run: Only say what would be done.

        Raises:
            ConcurrentModificationError: a conflicting change came first.
        """
        from mooring.tables.compaction import Cleaning, compact

        return compact(
            self.handle,
            Cleaning(older_than, keep),
            branch=branch,
            target_rows=target_rows,
            dry_run=dry_run,
        )

    def transaction(self, id: str | int, *, branch: str | None = None) -> Transaction:  # noqa: A002  # the API's word
        """Describe a transaction, by its identifier or by the version that it made.

        Raises:
            TransactionNotFoundError: no version that is there was made by it.
        """
        from mooring.tables.transactions import describe_transaction

        return describe_transaction(self.handle, str(id), branch=branch)

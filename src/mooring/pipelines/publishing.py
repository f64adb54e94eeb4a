"""Publishing what a run wrote: Lance tables follow once the run is visible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mooring.changes.publishing import publish
from mooring.changes.table import ChangeTable
from mooring.errors import MooringError
from mooring.identifiers import quote
from mooring.pipelines.history import find_record, save_record

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mooring.catalog import Catalog
    from mooring.metastore.transaction import Transaction
    from mooring.pipelines.definition import Output
    from mooring.pipelines.history import OutputRecord, RunRecord

__all__ = ["publish_outputs"]


def publish_outputs(
    catalog: Catalog,
    outputs: Sequence[Output],
    record: RunRecord,
    tell: Callable[[str], None],
) -> RunRecord:
    """Publish the outputs of a run that is done, except those that are published already.

    Returns:
        The record, with what they became.

    Raises:
        MooringError: one cannot be published; the run is done all the same, and repeating it
            publishes what is left.
    """
    wanted = {one.label: one for one in outputs if one.publish is not None}
    published = {
        one.table: _publish(catalog, wanted[_label(one)], tell)
        for one in record.outputs
        if _label(one) in wanted and one.published is None
    }
    return _note(catalog, record, published) if published else record


def _label(one: OutputRecord) -> str:
    return f"{one.change} {one.table} from {one.source}"


def _publish(catalog: Catalog, output: Output, tell: Callable[[str], None]) -> str:
    publication = output.publish
    assert publication is not None  # noqa: S101  # only those are asked for
    tell(f"publishing {output.table}")
    settings: dict[str, Any] = dict(publication.settings)
    try:
        report = publish(ChangeTable(catalog, output.table), publication.into, **settings)
    except MooringError as exc:
        msg = (
            f"{publication.place}: the run is done, but {quote(output.table)} could not be"
            f" published: {exc}; run the pipeline again to publish it"
        )
        raise type(exc)(msg) from exc
    return f"{report.into} version {report.version}"


def _note(catalog: Catalog, record: RunRecord, published: dict[str, str]) -> RunRecord:
    def work(txn: Transaction) -> RunRecord:
        known = find_record(txn, record.pipeline, record.run) or record
        outputs = tuple(
            replace(one, published=published.get(one.table, one.published)) for one in known.outputs
        )
        changed = replace(known, outputs=outputs)
        save_record(txn, changed)
        return changed

    return catalog.metastore.run(work, message=f"run {record.run}: published")

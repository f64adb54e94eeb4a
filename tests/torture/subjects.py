"""The kinds of catalogs that simulations know, by name."""

from __future__ import annotations

from .compat_subject import CompatSubject
from .metastore_subject import TablesSubject, TransactionsSubject
from .plain_subject import PlainSubject
from .rows_subject import ManifestSubject

SUBJECTS = {
    subject.name: subject
    for subject in (
        PlainSubject,
        CompatSubject,
        ManifestSubject,
        TablesSubject,
        TransactionsSubject,
    )
}

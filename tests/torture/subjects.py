"""The kinds of catalogs that simulations know, by name."""

from __future__ import annotations

from .compat_subject import CompatSubject
from .metastore_subject import TablesSubject, TransactionsSubject
from .plain_subject import PlainSubject
from .rows_subject import ManifestSubject

# Simulated only where they are asked for by name: of one seed in two hundred the model cannot tell
# that it is right: races of a directory, a row and another name of the directory for one name.
UNFINISHED = {CompatSubject.name: "its model is not complete; --backend compat runs it"}
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

"""What the tour tells: its steps, the files they begin with, and what to try afterwards.

Every line is one that a user would type in the folder of the tour, and is run as it is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CATALOG", "FILES", "NEXT", "STEPS", "Line", "Step"]

CATALOG = "lake"

FILES = {
    "cities.csv": (
        "name,country,people\n"
        "Oslo,NO,717000\nLima,PE,10092000\nQuito,EC,2012000\nHanoi,VN,8054000\n"
    ),
    "more.csv": "name,country,people\nCairo,EG,10230000\nPerth,AU,2310000\n",
}


@dataclass(frozen=True, slots=True)
class Line:
    """A command line.

    Attributes:
        text: As it is typed.
        code: How it ends: 0 where it does what was asked for.
    """

    text: str
    code: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the tour.

    Attributes:
        heading: What is done.
        why: What it is good for.
        lines: What is typed, one after the other.
        at_once: Who types the lines at the same moment, each in a process of their own; one of
            them wins, and the others end with the code of their line. Empty where nobody races.
    """

    heading: str
    why: str
    lines: tuple[Line, ...]
    at_once: tuple[str, ...] = ()


STEPS = (
    Step(
        "A catalog is a directory",
        "There is no server to run. A directory becomes a catalog by a small file of settings; in"
        " a bucket the same line takes s3://bucket/lake.",
        (Line("mooring init lake"),),
    ),
    Step(
        "A table from a file",
        "cities.csv has four rows. They become a Lance table, at once and whole: whoever lists the"
        " catalog sees all of it or nothing. Parquet, JSON and Arrow do as well.",
        (Line("mooring -c lake table create cities --from cities.csv"), Line("mooring ls lake")),
    ),
    Step(
        "Ask it",
        "A filter is SQL. -o json, ndjson or csv writes the same for programs.",
        (
            Line("mooring -c lake table query cities --where 'people > 2500000'"),
            Line("mooring -c lake table query cities --columns name --limit 1 -o json"),
        ),
    ),
    Step(
        "Every change is a version",
        "Rows are added, and the version that comes of it gets a name. Then somebody deletes too"
        " much.",
        (
            Line("mooring -c lake table insert cities more.csv"),
            Line("mooring -c lake table tag create cities census"),
            Line("mooring -c lake table delete cities --where 'people > 1000000'"),
            Line("mooring -c lake table query cities"),
        ),
    ),
    Step(
        "Back to a version",
        "Older versions are still there, so nothing is lost: restore makes one of them the newest."
        " The history tells all of it.",
        (
            Line("mooring -c lake table restore cities census"),
            Line("mooring -c lake table count cities"),
            Line("mooring -c lake table history cities"),
        ),
    ),
    Step(
        "A drop by mistake",
        "The table is gone for readers, and its name is free. Its bytes stay where they are. The"
        " message says what to do about it; the exit code is 3, for something that is not there.",
        (
            Line("mooring -c lake table drop cities --ttl 3d"),
            Line("mooring -c lake table query cities", code=3),
        ),
    ),
    Step(
        "Out of the trash",
        "A dropped table waits in the trash, here for three days, and longer while nobody empties"
        " it: time alone deletes nothing.",
        (
            Line("mooring -c lake trash list"),
            Line("mooring -c lake table undrop cities"),
            Line("mooring -c lake table count cities"),
        ),
    ),
    Step(
        "Gone for good",
        "Only a purge deletes bytes, and only of what was dropped before. It asks first, unless"
        " --yes is said.",
        (
            Line("mooring -c lake table create scratch --from more.csv"),
            Line("mooring -c lake table drop scratch"),
            Line("mooring -c lake trash purge scratch --yes"),
        ),
    ),
    Step(
        "Namespaces and new names",
        "Namespaces hold tables and further namespaces. A table t in a namespace a is called a$t,"
        " in single quotes because of the shell. To rename it changes a row of the catalog and"
        " moves no file.",
        (
            Line("mooring -c lake namespace create geo"),
            Line("mooring -c lake table create 'geo$towns' --from cities.csv"),
            Line("mooring -c lake table rename 'geo$towns' 'geo$places'"),
            Line("mooring -c lake namespace tree"),
        ),
    ),
    Step(
        "A whole tree, and back",
        "A namespace is dropped with all that is in it by one commit, and comes back whole.",
        (
            Line("mooring -c lake namespace drop geo --cascade --yes"),
            Line("mooring -c lake namespace undrop geo"),
            Line("mooring -c lake table count 'geo$places'"),
        ),
    ),
    Step(
        "Two want one name",
        "Ada and Bob create the same table at the same moment, in two processes. The store takes"
        " the first of them and refuses the second: one wins, one is told, no lock is left. Who it"
        " is differs from tour to tour.",
        (
            Line("mooring -c lake table create prize --from cities.csv", code=4),
            Line("mooring -c lake table create prize --from more.csv", code=4),
        ),
        at_once=("ada", "bob"),
    ),
    Step(
        "Protect what matters",
        "A protected table refuses to be dropped until that is lifted; the exit code is 5.",
        (
            Line("mooring -c lake table protect prize"),
            Line("mooring -c lake table drop prize", code=5),
            Line("mooring -c lake table history prize"),
        ),
    ),
    Step(
        "Is all well?",
        "The audit looks through the files of every table, and repairs what can be repaired with"
        " --repair. The doctor checks settings, store and catalog, and names the versions that a"
        " report of a fault needs.",
        (Line("mooring -c lake audit"), Line("mooring -c lake doctor")),
    ),
)

# What a newcomer does next: a line to type, and what it is.
NEXT = (
    ("mooring ui lake", "the catalog in the browser (pip install 'mooring[server]')"),
    ("mooring serve lake", "for a team: Lance and Iceberg clients, and pages"),
    ("mooring init s3://bucket/lake", "the same in a bucket: S3, Google Cloud Storage, Azure"),
    ("mooring ingest more.csv --into cities -c lake", "files and databases, large ones by Spark"),
    ("mooring spark-conf lake", "settings for Spark SQL; in Python: mooring.spark.read_table"),
    ("mooring init metastore+shop", "transactions over many tables, and change tables"),
    ("mooring completion bash --help", "names and options by the Tab key"),
    ("mooring --help", "every verb; the pages below docs/ tell the rest"),
)

"""What the guides to servers show for programs, with a server of this machine for theirs."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace

import pytest

import mooring
from tests.docs.documents import DOCS, ROOT, blocks_of, lines_of, run
from tests.interop.lance_peer import NotBuiltError, start_pyiceberg
from tests.own_irc import run_own
from tests.own_server import run_server

SERVE = DOCS / "how-to" / "serve.md"
README = ROOT / "README.md"
SERVE_ICEBERG = DOCS / "how-to" / "serve-iceberg.md"
# Where the guides say that the server listens.
_ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture
def catalog(tmp_path):
    return mooring.connect(tmp_path / "served")


def moved(guide, language, address):
    """Return the blocks of a guide that speak of the server, with its address."""
    blocks = [one for one in blocks_of(guide, language) if _ADDRESS in one.text]
    assert blocks
    return [replace(one, text=one.text.replace(_ADDRESS, address)) for one in blocks]


def test_programs_reach_a_server(catalog):
    names = {"__name__": "document"}
    with run_server(catalog) as address:
        for block in moved(SERVE, "py", address):
            run(block, SERVE, names)
    assert names["cities"].count_rows() == catalog.table("cities").count() == 1


def test_an_iceberg_catalog_keeps_tables(tmp_path):
    (block,) = (one for one in blocks_of(README, "py") if "iceberg+" in one.text)
    names = {"__name__": "document", "mooring": mooring, "rows": [{"name": "Kiel"}]}
    with run_own(mooring.connect(f"metastore+{tmp_path / 'lake'}")) as address:
        here = block.text.replace("https://irc.example.com?", f"{address}?").replace(
            "warehouse=lake&", ""
        )
        run(replace(block, text=here), README, names)
        assert names["lake"].table("geo$cities").count() == 1


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not here")
def test_curl_reaches_a_server(catalog):
    catalog.create_table("cities", [{"name": "Kiel"}])
    catalog.drop_table("cities")
    with run_server(catalog) as address:
        (block,) = moved(SERVE, "sh", address)
        for line in lines_of(block):
            asked = line.replace("curl ", "curl --silent --show-error --fail-with-body ", 1)
            done = subprocess.run(
                ["bash", "-c", asked], capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert catalog.table_exists("cities")
    with pytest.raises(mooring.errors.MooringError, match="protected"):
        catalog.drop_table("cities")


@pytest.mark.interop
def test_pyiceberg_reaches_a_server(catalog, tmp_path):
    catalog.create_table("cities", [{"name": "Kiel"}])
    with run_server(catalog) as address:
        try:
            pyiceberg = start_pyiceberg(tmp_path, uri=f"{address}/iceberg")
        except NotBuiltError as error:
            pytest.skip(f"PyIceberg did not run: {error}")
        for block in moved(SERVE_ICEBERG, "py", address):
            pyiceberg("run", code=block.text)
        pyiceberg.close()

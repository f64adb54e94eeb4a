"""The files in which Lance keeps transactions."""

from __future__ import annotations

import pytest

from mooring.tables.transaction_files import UNKNOWN, TransactionFile, named_in

UUID = "39ebdb6e-2e07-4b08-a66e-191b1227c832"


def _counted(number: int, body: bytes) -> bytes:
    key = number << 3 | 2
    tag = bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])
    return tag + bytes([len(body)]) + body


def _file(operation: int = 107, read_version: bytes = b"\x08\xac\x02") -> bytes:
    pair = _counted(1, b"mooring.by") + _counted(2, b"alice")
    return read_version + _counted(2, UUID.encode()) + _counted(4, pair) + _counted(operation, b"x")


def test_a_file_tells_version_identifier_operation_and_properties():
    found = TransactionFile.decode(_file())
    assert found == TransactionFile(300, UUID, "ReserveFragments", {"mooring.by": "alice"})


def test_a_version_of_zero_is_left_out_of_the_file():
    assert TransactionFile.decode(_file(read_version=b"")).read_version == 0


def test_an_operation_of_a_later_release_is_unknown():
    assert TransactionFile.decode(_file(operation=199)).operation == UNKNOWN


def test_fields_of_fixed_size_are_passed_over():
    fixed = bytes([15 << 3 | 1]) + bytes(8) + bytes([15 << 3 | 5]) + bytes(4)
    assert TransactionFile.decode(fixed + _file()).uuid == UUID


@pytest.mark.parametrize("body", [b"", b"\xff", b"\x80" * 20, b"\x07abc", _file()[:10]])
def test_what_cannot_be_read_ends_the_reading(body):
    assert TransactionFile.decode(body).operation == UNKNOWN


def test_a_manifest_names_its_file_with_dashes_or_without():
    plain = UUID.replace("-", "")
    assert named_in(b"\x00\x01" + f"8-{UUID}.txn".encode() + b"\x02") == [f"8-{UUID}.txn"]
    assert named_in(f"0-{plain}.txn".encode()) == [f"0-{plain}.txn"]
    assert named_in(b"nothing") == []

"""Files for the eyes of their owner, written as a whole or not at all."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["replace_private"]


def replace_private(path: Path, text: str) -> None:
    """Put a text in the place of a file, which only its owner can read then.

    Whoever reads meanwhile gets the text before or this one, and a crash leaves one of them.

    Args:
        path: The file; its directory is there.
        text: What it is to hold.

    Raises:
        OSError: it cannot be written; the file before stays.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

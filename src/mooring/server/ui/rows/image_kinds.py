"""Which bytes are pictures: told by how they begin, never by what anybody calls them."""

from __future__ import annotations

__all__ = ["HEAD_BYTES", "LARGEST_BYTES", "image_type"]

# So many bytes tell.
HEAD_BYTES = 16
# No larger ones are shown.
LARGEST_BYTES = 8_000_000
_WEBP = slice(8, 12)


def image_type(head: bytes) -> str | None:
    """Return the media type of a picture that a browser draws and never runs; None for others.

    Args:
        head: The first bytes.
    """
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[_WEBP] == b"WEBP":
        return "image/webp"
    return None

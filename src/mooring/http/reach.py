"""How a server is reached."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reach"]


@dataclass(frozen=True, slots=True)
class Reach:
    """An address, whom to trust there, and how patient to be.

    Attributes:
        address: Below which all paths lie.
        headers: Sent with every request.
        ca_file: The authorities whose certificates count, instead of the system's.
        client_cert: A certificate to show to the server.
        client_key: Its key, where the file of the certificate does not hold it.
        verify: Whether the server's certificate is looked at.
        timeout_s: How long an answer may take.
        secrets: What no message may show, beside what the authorization knows.
    """

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    verify: bool = True
    timeout_s: float = 30.0
    secrets: tuple[str, ...] = field(default=(), repr=False)

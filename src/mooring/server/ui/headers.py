"""What browsers are told about every page: to run and show only what this server itself has."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PAGE_HEADERS", "PICTURE_HEADERS"]

_RULES = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "font-src 'self'",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
_ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    # Not "no-referrer", with which forms would not say where they come from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

PAGE_HEADERS: Mapping[str, str] = {
    **_ALWAYS,
    "Content-Security-Policy": "; ".join(_RULES),
    "Cache-Control": "private, no-cache",
    "Vary": "Cookie, Authorization, Accept",
}
# Of a picture's bytes nobody knows who made them: opened by itself, it may do nothing at all.
PICTURE_HEADERS: Mapping[str, str] = {
    **_ALWAYS,
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=300",
    "Vary": "Cookie, Authorization",
}

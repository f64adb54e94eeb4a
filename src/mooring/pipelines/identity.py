"""What makes two runs the same: definition, parameters, and the versions of what is read."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING

from mooring.pipelines.definition import PythonStep
from mooring.pipelines.inputs import ChangesInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mooring.pipelines.definition import Pipeline
    from mooring.pipelines.inputs import Input

__all__ = ["fingerprint", "work_digest"]

# What says nothing about what comes out.
_LEFT_OUT = {"place", "description", "path", "catalog"}


def fingerprint(pipeline: Pipeline, inputs: Iterable[Input]) -> str:
    """Return what is the same for runs that are repetitions of each other.

    Where the changes that are read begin is no part of it: after the first run there are none
    left, and still it is the same run.
    """
    versions = {one.source.name: _without_after(one) for one in inputs}
    return _digest({"pipeline": _plain(pipeline), "inputs": versions})


def work_digest(fingerprint_: str, inputs: Iterable[Input]) -> str:
    """Return what is the same for runs that compute the same rows."""
    begins = {one.source.name: one.after for one in inputs if isinstance(one, ChangesInput)}
    return _digest({"fingerprint": fingerprint_, "after": begins})


def _without_after(one: Input) -> dict[str, object]:
    return {key: value for key, value in one.version.items() if key != "after"}


def _plain(value: object) -> object:
    if isinstance(value, PythonStep):
        return {"function": str(value.function), "digest": value.source.digest, "name": value.name,
                "expectations": _plain(value.expectations)}  # fmt: skip
    if is_dataclass(value):
        return {
            one.name: _plain(getattr(value, one.name))
            for one in fields(value)
            if one.name not in _LEFT_OUT
        }
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()

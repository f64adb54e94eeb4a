"""Measurements of Mooring beside its peers and the bare machine; run by ``python -m bench``.

Each benchmark is a module that `__main__` names, with a ``run`` that returns a section of `figures`
and `curves`; `measuring` runs it, `results` keeps what it found, and `markdown` makes the report of
that, with pictures by `charts` and `bars`.
"""

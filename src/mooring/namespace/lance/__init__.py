"""A backend as a LanceNamespace: requests in, responses out, errors of the specification."""

from mooring.namespace.lance.adapter import LanceAdapter

__all__ = ["LanceAdapter"]

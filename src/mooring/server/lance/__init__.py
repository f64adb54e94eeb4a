"""Lance's REST protocol, over any implementation of Lance's namespaces.

Spec: lance-rest-openapi.
"""

"""What Mooring's catalogs have and Lance's REST protocol has no address for.

Dropped tables and their return, the trash, protection, properties, history, transactions and runs.
"""

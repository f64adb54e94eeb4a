"""The command line: ``mooring <noun> <verb>``.

Nothing heavy is imported here or at the top of any module below: a command imports what it uses.
"""

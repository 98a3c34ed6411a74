"""Candidate server in Python: an address book in PostgreSQL, over HTTP and CardDAV.

What it answers, and why its Rust counterpart answers the same, is in ``examples/servers/README.md``.
"""

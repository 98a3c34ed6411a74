"""Candidate server in Python: an address book in PostgreSQL, over HTTP and CardDAV.

``examples/servers/README.md`` lists its answers, and the reasons why the Rust server gives the same answers.
"""

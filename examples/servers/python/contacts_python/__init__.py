"""Candidate server in Python: one vCard out of PostgreSQL for each request.

What it answers, and why its Rust counterpart answers the same, is in ``examples/servers/README.md``.
"""

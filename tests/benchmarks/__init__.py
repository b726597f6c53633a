"""Benchmarks: what Refledger costs, and what it finds. Each module prints its own figures."""

"""Benchmarks, run by ``python -m bench``; docs/evidence/benchmarks.md explains them."""

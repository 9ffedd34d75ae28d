"""Exchanges whose sums come over the switch or between hosts, a choice that may change."""

"""Captured packets: reading files and interfaces, decoding, and summaries of a run."""

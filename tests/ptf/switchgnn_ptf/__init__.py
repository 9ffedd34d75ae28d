"""Shared parts of the PTF cases, and the start of their switches."""

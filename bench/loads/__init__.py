"""Processes that load a switch."""

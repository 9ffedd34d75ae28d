"""Serves P4Runtime over gRPC."""

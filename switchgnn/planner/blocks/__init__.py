"""Strategies that form blocks of boundary edges."""

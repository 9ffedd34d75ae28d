"""Graphs, where they come from, and the edges that cross from worker to worker."""

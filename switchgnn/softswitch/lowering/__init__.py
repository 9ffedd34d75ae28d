"""Lowers a program to the intermediate representation."""

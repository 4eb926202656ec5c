"""Operators for jobs on accelerators."""

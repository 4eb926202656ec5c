"""Triggers that wait for jobs without holding a worker."""

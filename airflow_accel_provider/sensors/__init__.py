"""Sensors that wait for room, proof, capacity or use of accelerators."""

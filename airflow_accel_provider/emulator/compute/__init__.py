"""Compute Engine: machines and places, quotas, and the VMs that jobs run on."""

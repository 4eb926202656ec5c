"""Cloud Monitoring: what the project's GPUs did and how its accelerator quotas stood, read from what happened.

Nothing is stored for it. The ledger says when which VM was there and which world it was; the series follow from that.
"""

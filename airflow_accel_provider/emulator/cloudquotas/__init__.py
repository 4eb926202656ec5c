"""The Cloud Quotas API: limits of the project, those too that Compute Engine's own lists lack."""

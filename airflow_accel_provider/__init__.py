"""Airflow provider for scheduled jobs on Google Cloud GPUs and TPUs."""

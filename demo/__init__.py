"""The whole of it on one machine: a local Google, a small real Airflow, and a DAG that must find its accelerator."""

"""The only package that imports pyspark: sessions, sources, the scan, the job. Knows no Airflow."""

"""`dql demo`: real flights through the example DAG, with Airflow's own scheduler."""

"""`dql demo`: three days of real flights through the example DAG, with Airflow's own scheduler."""

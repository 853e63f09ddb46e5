"""Thresholds as a task for reinforcement learning; needs `pip install 'dqx-airflow[learning]'`."""

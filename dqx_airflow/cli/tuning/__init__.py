"""The commands against false alarms: history, labels, backtests, review. One module for each
verb."""

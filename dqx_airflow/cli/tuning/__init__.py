"""The commands around false alarms: history, labels, backtests, review. One module a verb."""

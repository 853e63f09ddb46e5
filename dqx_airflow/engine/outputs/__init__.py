"""Outputs of a scan: samples of failing rows, the quarantine, promoted rows, and their writers."""

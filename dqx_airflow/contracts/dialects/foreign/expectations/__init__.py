"""Expectations of Great Expectations as demands, grouped by their subject."""

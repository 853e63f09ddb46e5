"""Expectations of Great Expectations as demands, by what they are about."""

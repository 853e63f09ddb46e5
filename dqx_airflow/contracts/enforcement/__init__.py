"""A contract as a gate enforces it: pinned, linted, compiled, every clause accounted for."""

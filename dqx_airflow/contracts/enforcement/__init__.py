"""A contract as enforced by a gate: pinned, linted, compiled, every clause accounted for."""

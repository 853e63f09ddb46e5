"""The enforcement of a contract by a gate: the version is pinned, mistakes are found, rules become
a suite, and every clause is accounted for.

Enter at `enforce` in `enforced_contract`. `contract_datasets` finds the data, and `coverage` lists
each clause with its treatment and its assertions.
"""

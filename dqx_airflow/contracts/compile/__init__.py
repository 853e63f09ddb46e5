"""A contract compiled to a DQL suite: one check a model, one assertion a rule.

    compiled = compile_contract(contract)
    compiled.text       # canonical DQL: the same contract gives the same text
    compiled.enforced   # the rule behind each assertion, by its name

The severity of an assertion is that of its rule, and P1 where the contract names none, whatever the
rule is about. Its tags are the dialect, the dimension (`dimension-completeness`), and the rule's.
"""

from __future__ import annotations

from dqx_airflow.contracts.compile.suite import Compiled, Unenforced, compile_contract

__all__ = ["Compiled", "Unenforced", "compile_contract"]

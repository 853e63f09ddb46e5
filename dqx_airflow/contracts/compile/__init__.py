"""Compiles a contract to a DQL suite: one check for each model, one assertion for each rule.

    compiled = compile_contract(contract)
    compiled.text       # canonical DQL: the same contract gives the same text
    compiled.enforced   # the rule behind each assertion, by its name

The severity of an assertion is that of its rule, and P1 if the contract states none, whatever the
rule is about. Its tags are the dialect, the dimension (`dimension-completeness`), and the rule's.
"""

from __future__ import annotations

from dqx_airflow.contracts.compile.suite import Compiled, Unenforced, compile_contract

__all__ = ["Compiled", "Unenforced", "compile_contract"]

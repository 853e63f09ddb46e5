"""Regular expressions of `matches` and of contracts: their meaning, and their cost.

`syntax` parses an expression of Java. Enter at `bounded` in `bounds`: it returns the expression for
Spark, and the length of the longest strings that can be decided.
"""

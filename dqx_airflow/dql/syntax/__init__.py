"""Source text to syntax tree: grammar, parser, recovery, syntax errors.

`parser.parse` is the door. Block files of DataLex have a reader of their own.
"""

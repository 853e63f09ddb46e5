"""Source text to syntax tree: grammar, parser, recovery, syntax errors.

Enter through `parser.parse`. Block files of DataLex have a separate reader.
"""

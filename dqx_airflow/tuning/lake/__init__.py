"""Drafts for all tables of a lake: the tables in a folder, a draft for each, and the references
between them.

`found_tables` finds the tables, `table_draft` drafts one of them, `references` compares their keys.
"""

"""Imports rule files of other tools as a DQL suite: `dql import`.

One module for each tool, or several that begin with its name. Each reads a document into
`ForeignRule`s: the text of a rule, and its translation, or why it has no counterpart.
`imported_suite` turns them into a suite, and checks it like any other. Text in, text out: no Spark,
no Airflow, and none of the tools.
"""

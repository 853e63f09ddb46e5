"""Rule files of other tools as a DQL suite: `dql import`.

One module a tool, and those that begin with its name. Each reads a document into `ForeignRule`s:
what a rule says, and what it becomes here, or why it has no counterpart. `suite` makes the suite of
them, and checks it as any other. Text in, text out: no Spark, no Airflow, and none of the tools.
"""

"""The formatter: one layout for each program. Enter through `formatter.format_source`."""

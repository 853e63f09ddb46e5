"""The formatter: one layout for one program. `formatter.format_text` is the door."""

"""The language: source text to tokens, to a tree with spans, to diagnostics. Pure Python."""

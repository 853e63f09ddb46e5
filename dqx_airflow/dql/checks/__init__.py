"""The checks of a parsed suite, each about one part of the language. `dql.check` runs them all."""

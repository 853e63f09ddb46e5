"""The checks of a parsed suite, each for one part of the language. `dql.check` runs them all."""

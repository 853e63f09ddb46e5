"""`dql package`: what a gate needs where its driver runs."""

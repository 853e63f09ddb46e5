"""The words of the interfaces: arguments of operators, and keys of JSON."""

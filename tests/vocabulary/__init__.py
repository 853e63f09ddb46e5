"""The words of the interfaces: what users type, arguments of operators, and keys of JSON."""

"""Editor support for DQL: the responses of a language server, as functions over texts and
positions."""

"""The editor side of DQL: what a language server answers, as functions over texts and places."""

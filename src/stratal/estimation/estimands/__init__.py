"""The estimands, one class each, whose `kind` is its name in texts, files and commands."""

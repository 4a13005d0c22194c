"""Floor 6: one thin module a command."""

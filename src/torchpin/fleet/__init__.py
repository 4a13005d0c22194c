"""Floor 1: what you have. The declared hardware, and the targets that follow from it."""

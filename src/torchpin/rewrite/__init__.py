"""Floor 4: plans become minimal edits, edits become files."""

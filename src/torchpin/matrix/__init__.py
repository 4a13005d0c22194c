"""Which releases run on which GPUs: a table for the terminal, and a web page."""

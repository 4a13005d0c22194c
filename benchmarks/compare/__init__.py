"""torchpin and its peers on the same machines and files."""

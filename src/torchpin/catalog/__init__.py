"""Floor 1: what exists. Published builds of the PyTorch family, with the evidence of each fact."""

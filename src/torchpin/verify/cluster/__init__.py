"""Verify many machines: run ``torchpin verify`` on each, and put their answers together."""

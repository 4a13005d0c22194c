"""Resolve: which set would run everywhere?"""

from torchpin.resolve.solve import solve

__all__ = ["solve"]

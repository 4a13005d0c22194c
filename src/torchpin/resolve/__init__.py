"""Resolve: which set would run everywhere? ``resolve.solve.solve`` is the way in."""

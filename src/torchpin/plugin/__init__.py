"""Floor 4: make pip, uv, Poetry and PDM install what runs on the fleet."""

"""Floor 4: findings as text, JSON, SARIF, GitHub annotations."""

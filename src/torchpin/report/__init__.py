"""Floor 4: findings, selections, plans and builds as text, JSON, SARIF, GitHub annotations.

Every module takes plain values and returns text; the command line prints it.
"""

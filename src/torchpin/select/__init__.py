"""Floor 2: which build would pip or uv pick for a declaration of an install on a target?"""

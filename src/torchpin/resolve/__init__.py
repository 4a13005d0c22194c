"""Floor 3: which set of builds would run on every target?"""

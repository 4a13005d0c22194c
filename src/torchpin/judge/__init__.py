"""Floor 2: does a build run on a target?"""

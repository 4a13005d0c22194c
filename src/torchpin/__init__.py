"""torchpin: will the PyTorch that these files install run on this fleet?"""

__version__ = "0.1.0"

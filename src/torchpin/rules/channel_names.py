"""Popular packages of which it is published that no channel lists them.

The tool that writes the pages of download.pytorch.org lists packages of two lists of names only
(``PACKAGE_ALLOW_LIST`` and ``PACKAGE_LINKS_ALLOW_LIST``). Each name here was looked for in both and
is in neither. Others that are in neither are left out of this table, not proved to be there.
"""

from __future__ import annotations

SOURCE = "https://github.com/pytorch/test-infra/blob/main/s3_management/manage_v2.py"

UNLISTED = frozenset(
    (
        *("accelerate", "albumentations", "black", "boto3", "celery", "chromadb", "deepspeed"),
        *("diffusers", "django", "evaluate", "faiss-cpu", "flask", "gensim", "gradio"),
        *("hydra-core", "imageio", "ipython", "jax", "jupyter", "keras", "kornia", "langchain"),
        *("librosa", "lightgbm", "lightning", "loguru", "mlflow", "mypy", "nltk", "notebook"),
        *("onnx", "onnxruntime", "openai-whisper", "opencv-python", "optuna", "peft", "plotly"),
        *("pytest", "pytorch-lightning", "redis", "ruff", "scikit-image", "scikit-learn"),
        *("seaborn", "sentence-transformers", "spacy", "sqlalchemy", "streamlit", "tensorboardx"),
        *("tensorflow", "timm", "trl", "ultralytics", "xgboost"),
    )
)

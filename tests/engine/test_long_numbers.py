"""Numbers of more digits than Python reads (``sys.get_int_max_str_digits``) end no run."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchpin.cli.main import guarded

MANY = "1" * 5000
FILES = {
    "requirements.txt": f"torch=={MANY}\ntorchvision>={MANY}.0\ntorchaudio==2.0+cu{MANY}\n"
    f'foo~=1.{MANY}\ntorch; python_version > "{MANY}"\n',
    "pyproject.toml": '[project]\nname = "x"\nversion = "1"\n'
    f'requires-python = ">=3.{MANY}"\ndependencies = ["torch=={MANY}", "torchvision>={MANY}"]\n'
    f'[tool.uv]\nrequired-version = "{MANY}"\n',
    "poetry/pyproject.toml": '[tool.poetry]\nname = "x"\nversion = "1"\n'
    f'[tool.poetry.dependencies]\npython = "^3.{MANY}"\ntorch = "^{MANY}"\n'
    f'torchvision = "~{MANY}"\n',
    "environment.yml": f"dependencies:\n  - python=3.{MANY}\n  - pytorch={MANY}\n  - pip:\n"
    f"    - torch=={MANY}\n",
    "Dockerfile": f"FROM pytorch/pytorch:{MANY}-cuda12.{MANY}-cudnn9-runtime\n"
    f"RUN pip install torch=={MANY} --index-url https://download.pytorch.org/whl/cu{MANY}\n"
    f"FROM python:3.{MANY}\nRUN pip install torch\n",
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("command", ["check", "show", "resolve", "fix --diff --unsafe-fixes"])
def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(FILES[name])
    code = guarded([*command.split(), str(path), "--isolated", "--gpu", "V100", "--python", "3.11"])
    assert code in (0, 1, 2), capsys.readouterr().err


def test_a_lock(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\n'
        'requires-python = ">=3.11"\ndependencies = ["torch"]\n'
    )
    (tmp_path / "uv.lock").write_text(
        'version = 1\nrequires-python = ">=3.11"\n[[package]]\nname = "torch"\n'
        f'version = "{MANY}"\nsource = {{ registry = "https://pypi.example/simple" }}\n'
    )
    assert guarded(["check", str(tmp_path), "--isolated", "--gpu", "V100"]) in (0, 1, 2)


def test_the_catalog(capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(["catalog", "show", "torch", MANY]) == 2
    assert guarded(["catalog", "refresh", "--since", MANY]) == 2

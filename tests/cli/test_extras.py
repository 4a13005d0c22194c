"""The command that adds an extra fits how torchpin was installed (PEP 610)."""

from __future__ import annotations

from typing import Any

import pytest

from torchpin.cli.extras import install_from

COMMIT = "0" * 40


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({}, "pip install 'torchpin[server]'"),
        ({"url": "file:///src/a%20b", "dir_info": {}}, "pip install '/src/a b[server]'"),
        (
            {"url": "file:///src/tp", "dir_info": {"editable": True}},
            "pip install -e '/src/tp[server]'",
        ),
        (
            {
                "url": "https://git.example/torchpin.git",
                "vcs_info": {"vcs": "git", "commit_id": COMMIT},
            },
            f"pip install 'torchpin[server] @ git+https://git.example/torchpin.git@{COMMIT}'",
        ),
        (
            {"url": "https://files.example/torchpin-1.0-py3-none-any.whl", "archive_info": {}},
            "pip install 'torchpin[server] @ https://files.example/torchpin-1.0-py3-none-any.whl'",
        ),
    ],
)
def test_command_for_an_origin(origin: dict[str, Any], command: str) -> None:
    assert install_from("server", origin) == command

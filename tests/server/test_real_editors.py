"""Real editors start ``torchpin server``, show its findings and make its fixes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")
from tests.server.editor import FLEET

PINS = "numpy\ntorch==2.14.1\ntorchvision==0.29.1\n"
FIXED = [
    "--extra-index-url https://download.pytorch.org/whl/cu126",
    "numpy",
    "torch==2.14.1+cu126",
    "torchvision==0.29.1+cu126",
]
NEOVIM = """
local command = { vim.env.TORCHPIN_PYTHON, "-m", "torchpin", "server" }
vim.cmd("edit requirements.txt")
local buffer = vim.api.nvim_get_current_buf()
local config = { name = "torchpin", cmd = command, root_dir = vim.fn.getcwd() }
if vim.lsp.start then
  vim.lsp.start(config)
else
  vim.lsp.buf_attach_client(buffer, vim.lsp.start_client(config))
end
local function say(words) io.stdout:write(words .. "\\n") end
local function shown()
  local codes = {}
  for _, one in ipairs(vim.diagnostic.get(buffer)) do table.insert(codes, one.code) end
  return table.concat(codes, " ")
end
vim.wait(30000, function() return shown() ~= "" end, 20)
say("found " .. shown())
local asked = {
  textDocument = vim.lsp.util.make_text_document_params(buffer),
  range = { start = { line = 0, character = 0 }, ["end"] = { line = 3, character = 0 } },
  context = { diagnostics = {}, only = { "source.fixAll" } },
}
local answers = vim.lsp.buf_request_sync(buffer, "textDocument/codeAction", asked, 30000)
for _, answer in pairs(answers) do
  for _, action in ipairs(answer.result) do
    vim.lsp.util.apply_workspace_edit(action.edit, "utf-16")
  end
end
vim.wait(30000, function() return shown() == "" end, 20)
say("left " .. shown())
for _, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do say("line " .. line) end
vim.cmd("qall!")
"""


def place(folder: Path) -> None:
    (folder / "torchpin.toml").write_text(FLEET)
    (folder / "requirements.txt").write_text(PINS)


def test_neovim(tmp_path: Path) -> None:
    program = os.environ.get("TORCHPIN_NVIM") or shutil.which("nvim")
    if program is None:
        pytest.skip("nvim is not installed")
    place(tmp_path)
    script = tmp_path / "drive.lua"
    script.write_text(NEOVIM)
    done = subprocess.run(
        [program, "--headless", "--clean", "-n", "-c", f"luafile {script.name}"],
        cwd=tmp_path,
        env={**os.environ, "TORCHPIN_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    said = done.stdout.splitlines()
    assert said[:2] == ["found TP201 TP203", "left "], done.stdout + done.stderr
    assert said[2:] == [f"line {one}" for one in FIXED]
    assert (tmp_path / "requirements.txt").read_text() == PINS


EMACS = """
(require 'eglot)
(setq eglot-sync-connect 60 eglot-confirm-server-initiated-edits nil)
(setq eglot-server-programs
      (list (list 'text-mode (getenv "TORCHPIN_PYTHON") "-m" "torchpin" "server")))
(find-file "requirements.txt")
(text-mode)
(apply #'eglot (eglot--guess-contact))
(flymake-mode 1)
(defun shown () (mapconcat #'flymake-diagnostic-text (flymake-diagnostics) "\\n"))
(defun wait-for (test)
  (let ((end (+ (float-time) 60)))
    (while (and (< (float-time) end) (not (funcall test)))
      (accept-process-output nil 0.05))))
(wait-for (lambda () (flymake-diagnostics)))
(princ (format "found %s %s\\n" (and (string-match-p "TP201" (shown)) t)
               (and (string-match-p "TP203" (shown)) t)))
(dolist (action (append (eglot-code-actions (point-min) (point-max) "source.fixAll.torchpin") nil))
  (eglot--apply-workspace-edit (plist-get action :edit)))
(dolist (line (split-string (buffer-string) "\\n" t)) (princ (format "line %s\\n" line)))
(set-buffer-modified-p nil)
(kill-emacs 0)
"""


def test_emacs(tmp_path: Path) -> None:
    program = shutil.which("emacs")
    if program is None:
        pytest.skip("emacs is not installed")
    parts = sorted(Path("/usr/share/emacs/site-lisp/elpa-src").glob("*"))  # Debian's packages
    where = [word for part in parts for word in ("-L", str(part))]
    probe = [program, "-Q", "--batch", *where, "-l", "eglot"]
    if subprocess.run(probe, capture_output=True, timeout=100).returncode:
        pytest.skip("this Emacs has no Eglot")
    place(tmp_path)
    (tmp_path / ".git").mkdir()  # what makes a project of it
    script = tmp_path / "drive.el"
    script.write_text(EMACS)
    done = subprocess.run(
        [program, "-Q", "--batch", *where, "-l", script.name],
        cwd=tmp_path,
        env={**os.environ, "TORCHPIN_PYTHON": sys.executable, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = [one for one in done.stdout.splitlines() if one.startswith(("found", "line"))]
    assert said[:1] == ["found t t"], done.stdout + done.stderr
    assert said[1:] == [f"line {one}" for one in FIXED]
    assert (tmp_path / "requirements.txt").read_text() == PINS

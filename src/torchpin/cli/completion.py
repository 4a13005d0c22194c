"""``torchpin completion``: the lines that make a shell complete torchpin's commands."""

from __future__ import annotations

from torchpin.cli.parser import Parser
from torchpin.cli.terminal import out

SHELLS = ("bash", "zsh", "fish", "powershell")
_HOW = """\
Print what makes a shell complete commands, options, GPU names, rules and versions of torchpin.

  bash        eval "$(torchpin completion bash)"   # in ~/.bashrc
  zsh         eval "$(torchpin completion zsh)"    # in ~/.zshrc, after compinit
  fish        torchpin completion fish | source    # in config.fish
  powershell  torchpin completion powershell | Out-String | Invoke-Expression"""


def parser() -> Parser:
    """Return the parser of ``completion``."""
    made = Parser("completion", _HOW)
    made.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")
    return made


def main(argv: list[str]) -> int:
    """Run ``completion`` and return 0."""
    args = parser().parse(argv)
    from argcomplete.shell_integration import shellcode

    code = shellcode(["torchpin"], shell=args.shell)
    out(code.strip("\n") + "\n")
    return 0

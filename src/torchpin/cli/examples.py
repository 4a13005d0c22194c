"""An example of each command: the last line of its help."""

from __future__ import annotations

EXAMPLES = {
    "check": "torchpin check --gpu V100 --driver 550.54.15 --python 3.11",
    "fix": "torchpin fix --diff requirements.txt",
    "show": "torchpin show --gpu V100,A100 --driver 550.54.15",
    "resolve": "torchpin resolve --policy newest --gpu V100 --gpu B200",
    "init": "torchpin init --gpu V100 --driver 550.54.15 --python 3.11",
    "explain": "torchpin explain TP201",
    "upgrade": "torchpin upgrade --to 2.15",
    "recipe": "torchpin recipe --gpu V100 --torch 2.15.0",
    "matrix": "torchpin matrix --gpu V100 --gpu B200",
    "fleet show": "torchpin fleet show --gpu p3.2xlarge",
    "fleet import": "nvidia-smi -q -x | torchpin fleet import -",
    "fleet detect": "torchpin fleet detect -o torchpin.toml",
    "inspect": "torchpin inspect torch-2.14.1-cp311-cp311-linux_x86_64.whl",
    "catalog show": "torchpin catalog show torch 2.14.1 --channel cu126",
    "catalog refresh": "torchpin catalog refresh --dry-run",
    "catalog verify": "torchpin catalog verify --sample 20",
    "catalog diff": "torchpin catalog diff shipped user",
    "constraints": "torchpin constraints --format uv",
    "index build": "torchpin index build public/",
    "index serve": "torchpin index serve --port 8080",
    "baseline create": "torchpin baseline create requirements",
    "baseline prune": "torchpin baseline prune",
    "verify": "torchpin verify --gpu 0",
    "server": "torchpin server --tcp 127.0.0.1:9257",
    "completion": 'eval "$(torchpin completion bash)"',
}
"""Command → a line that may be copied."""

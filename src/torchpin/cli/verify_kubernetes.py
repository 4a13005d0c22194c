"""``torchpin verify --kubernetes``: write the manifest."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from torchpin.cli.arguments import Arguments
from torchpin.cli.main import CLEAN
from torchpin.cli.terminal import note, out
from torchpin.errors import UsageError
from torchpin.report.style import clean

if TYPE_CHECKING:
    from torchpin.verify.cluster.kubernetes import Asked
    from torchpin.verify.cluster.model import Expected


def write_manifest(args: Arguments) -> int:
    """Print or write the manifest and return the exit code.

    Raises:
        UsageError: something that Kubernetes does not take; the file cannot be written.
    """
    from torchpin.cli.constraints import write
    from torchpin.verify.cluster import bundle, kubernetes

    asked = _asked(args)
    packed = None if args.in_image else bundle.build()
    file = args.output or "verify.yaml"
    text = kubernetes.to_yaml(
        kubernetes.documents(asked, packed), _comments(asked, file, args.nodes)
    )
    if args.output is None:
        out(text)
        return CLEAN
    write(args.output, text)
    if not args.quiet:
        note(f"create its pods: kubectl apply -f {shlex.quote(clean(args.output))}")
    return CLEAN


def _asked(args: Arguments) -> Asked:
    from torchpin.verify.cluster import kubernetes
    from torchpin.verify.cluster.expected import only, read_expected

    if args.output_format != "text" or args.gpu or args.config or args.group:
        raise UsageError(
            "--output-format, --gpu, --config and --group do not go with --kubernetes",
            hint="give them to `torchpin verify --from`",
        )
    nodes: tuple[Expected, ...] = ()
    if args.nodes:
        from torchpin.cli.fleet_import import read_bytes

        found = read_expected(read_bytes(args.nodes), args.nodes, args.resource)
        nodes = only(found, args.nodes)
        if not args.quiet:
            for node in found:
                if node.reason:
                    note(f"{clean(node.name)} gets no pod: {clean(node.reason)}")
    kind = args.kind or (kubernetes.JOB if nodes or args.count else kubernetes.DAEMONSET)
    if args.count is not None and args.count < 1:
        raise UsageError("--count takes a number above 0")
    return kubernetes.Asked(
        image=args.image or "",
        kind=kind,
        name=args.name,
        namespace=args.namespace,
        python="python3" if args.python == sys.executable else args.python,
        options=(f"--timeout={args.timeout:g}",),
        nodes=nodes,
        number=args.count or 0,
        gpus=args.gpus,
        resource=args.resource,
        selectors=tuple(kubernetes.read_selector(text) for text in args.node_selector),
        tolerations=tuple(kubernetes.read_toleration(text) for text in args.toleration),
        pull_secret=args.image_pull_secret,
        user=args.run_as_user,
        seconds=int(args.wait + args.node_timeout),
    )


def _comments(asked: Asked, file: str, nodes: str | None) -> list[str]:
    space = f" -n {asked.namespace}" if asked.namespace else ""
    label = f"app.kubernetes.io/instance={asked.name}"
    name = shlex.quote(clean(file))
    expected = shlex.quote(clean(nodes)) if nodes else "nodes.json"
    listed = [] if nodes else ["  kubectl get nodes -o json > nodes.json"]
    return [
        "Written by `torchpin verify --kubernetes`. Each node prints JSON lines.",
        f"  kubectl apply -f {name}",
        *listed,
        "Repeat these three until all nodes have answered:",
        f"  kubectl logs{space} --prefix --ignore-errors --tail=-1 -l {label} > verify.log",
        f"  kubectl get pods{space} -o json -l {label} > pods.json",
        f"  torchpin verify --from verify.log --pods pods.json --nodes {expected}",
        f"  kubectl delete -f {name}",
    ]

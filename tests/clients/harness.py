"""What other tests use of this folder: the stub, the runners and the proof of an install."""

from tests.clients.installs import assert_installs, install
from tests.clients.runners import Picked, Pip, Result, Uv, Where
from tests.clients.stub_server import Stub

__all__ = ["Picked", "Pip", "Result", "Stub", "Uv", "Where", "assert_installs", "install"]

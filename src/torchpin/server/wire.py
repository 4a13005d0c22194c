"""Messages on the wire where pygls is stricter, or more silent, than the protocol.

Names of header fields count in any case (RFC 9110), what is lost between two messages does not
swallow the rest, and every request has an answer: a client waits for it.
"""

from __future__ import annotations

from typing import Any, BinaryIO, cast

from pygls.exceptions import JsonRpcException, JsonRpcInvalidRequest
from pygls.protocol import LanguageServerProtocol

from torchpin.patterns import regex

_LENGTH = regex(r"(?i)content-length:[ \t]*(\d{1,9})[ \t]*\r?\n\Z")
"""At the end of a line: before it may stand what a wrong length left over."""
NOT_INITIALIZED = -32002
"""``ServerNotInitialized`` of the protocol."""


class Input:
    """Standard input, whose header fields are written as pygls reads them."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream

    def readline(self) -> bytes:
        """Return the next line; ``b""`` at the end."""
        line = self.stream.readline()
        found = _LENGTH.search(line.decode("latin-1"))
        if found is not None:
            return b"Content-Length: %d\r\n" % int(found[1])
        return b"X-" + line if line.startswith(b"Content-Length:") else line  # none that counts

    def read(self, size: int) -> bytes:
        """Return the next bytes; fewer at the end."""
        return self.stream.read(size)


class NotInitialized(JsonRpcException):
    """A request came before ``initialize``."""

    CODE = NOT_INITIALIZED
    MESSAGE = "not initialized"


class Answering(LanguageServerProtocol):
    """The protocol, in which no request stays without an answer."""

    met = False
    """The client has sent ``initialize``."""
    shut = False
    """The client has sent ``shutdown``."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """Return a message; one with wrong parameters is answered, and one of an unknown method may
        have none.

        Raises:
            JsonRpcException: the message is none of the protocol.
        """
        if "method" in data and self.get_message_type(str(data["method"])) is None:
            data.setdefault("params", None)
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" in data and isinstance(data.get("id"), (int, str)):
                self._refuse(data["id"], error)
            raise

    def handle_message(self, message: Any) -> None:
        """Take in a message; a request that is out of turn is refused."""
        method, number = getattr(message, "method", None), getattr(message, "id", None)
        if method is not None and number is not None:
            if self.shut:
                self._refuse(number, JsonRpcInvalidRequest("the server was shut down"))
                return
            if self.met == (method == "initialize"):
                twice = JsonRpcInvalidRequest("initialized twice")
                self._refuse(number, twice if self.met else NotInitialized())
                return
            self.met = True
            self.shut = method == "shutdown"
        elif method is not None and not self.met and method != "exit":
            return  # the protocol asks to drop them
        super().handle_message(message)

    def _refuse(self, number: int | str, error: JsonRpcException) -> None:
        cast(Any, self)._send_response(number, error=error.to_response_error())

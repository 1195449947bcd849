"""A reverse proxy for the tests: asks for a password, and tells the server behind it who it was, as oauth2-proxy does.

Run as ``proxy.py PORT PORT_OF_THE_SERVER``. It connects from 127.0.0.2.
"""

import base64
import http.client
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PEOPLE = {"ann:anns-password": ("ann", "visitors,ward"), "bob:bobs-password": ("bob", "clinic-admins")}
OWN = ("x-forwarded-user", "x-forwarded-groups", "authorization", "connection")


class Proxy(BaseHTTPRequestHandler):
    """Every request is either refused, or passed on with the headers of who has logged in."""

    def do_GET(self) -> None:
        kind, _, given = self.headers.get("Authorization", "").partition(" ")
        person = PEOPLE.get(base64.b64decode(given).decode()) if kind == "Basic" else None
        if person is None:
            self._answer(401, b"{}", {"WWW-Authenticate": "Basic"})
            return
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() not in OWN}
        headers |= {"X-Forwarded-User": person[0], "X-Forwarded-Groups": person[1], "X-Forwarded-For": "192.0.2.1"}
        behind = http.client.HTTPConnection("127.0.0.1", int(sys.argv[2]), source_address=("127.0.0.2", 0))
        behind.request(self.command, self.path, body, headers)
        found = behind.getresponse()
        self._answer(found.status, found.read(), {"Content-Type": found.headers.get("Content-Type", "")})

    do_POST = do_DELETE = do_GET  # noqa: N815

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *given: object) -> None:
        """Nothing."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Proxy).serve_forever()

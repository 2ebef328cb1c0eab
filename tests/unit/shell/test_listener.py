"""No client can block the listener: slow ones are cut off, many are turned away, bad requests get clear answers, certificates renew."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from xpulse import listener as module
from xpulse.listener import Answer, Listener, Request, Tls, said


def echo(request: Request) -> Answer:
    if request.path == "/broken":
        raise RuntimeError("a defect")
    return said(200, f"{request.method} {request.path} {dict(request.parameters)}\n", {"X-Token": request.headers.get("x-token", "")})


@pytest.fixture
def listener() -> Iterator[Listener]:
    found = Listener("127.0.0.1", 0, echo, patience_seconds=0.5)
    yield found
    found.close()


def connect(to: Listener) -> socket.socket:
    return socket.create_connection(("127.0.0.1", to.port), timeout=5)


def ask(to: Listener, request: str) -> str:
    with connect(to) as client:
        client.sendall(request.encode())
        return everything(client)


def everything(client: socket.socket) -> str:
    found = b""
    while part := client.recv(65536):
        found += part
    return found.decode()


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.01)
    return False


def test_path_parameters_and_headers_reach_the_page(listener: Listener) -> None:
    reply = ask(listener, "GET /metrics?names=dcgm&x=%22&names=last HTTP/1.1\r\nX-Token: abc\r\n\r\n")
    assert reply.startswith("HTTP/1.0 200 OK\r\n")
    assert reply.endswith("GET /metrics {'names': 'last', 'x': '\"'}\n")
    assert "X-Token: abc\r\n" in reply
    assert "Python" not in reply


def test_head_is_the_same_without_the_body(listener: Listener) -> None:
    reply = ask(listener, "HEAD /metrics HTTP/1.1\r\n\r\n")
    assert reply.endswith("\r\n\r\n")
    assert f"Content-Length: {len('HEAD /metrics {}') + 1}\r\n" in reply


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        ("POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n", "405", "only GET and HEAD"),
        ("DELETE / HTTP/1.1\r\n\r\n", "405", "Allow: GET, HEAD"),
        ("BREW / HTTP/1.1\r\n\r\n", "501", "Unsupported method"),
        ("nonsense\r\n\r\n", "400", "Bad request syntax"),
        ("GET / HTTP/9.9\r\n\r\n", "505", "Invalid HTTP version"),
        (f"GET /{'x' * 70_000} HTTP/1.1\r\n\r\n", "414", "Too Long"),
        ("GET / HTTP/1.1\r\n" + "A: b\r\n" * 200 + "\r\n", "431", "Too many headers"),
        ("GET /?" + "&".join(f"a{n}=1" for n in range(30)) + " HTTP/1.1\r\n\r\n", "400", "more than 20 parameters"),
        ("GET /broken HTTP/1.1\r\n\r\n", "500", "the log says why"),
    ],
    ids=["post", "delete", "unknown-method", "nonsense", "version", "long", "headers", "parameters", "defect"],
)
def test_bad_requests_get_clear_answers(listener: Listener, request_: str, status: str, words: str) -> None:
    try:
        reply = ask(listener, request_)
    except ConnectionResetError:  # the rest of an over-long request was still on its way when the answer was given
        pytest.skip("the kernel dropped the answer with the unread rest")
    assert words in reply
    assert status in reply
    assert "Traceback" not in reply


# peers.md A1: dcgm-exporter 4.8.4 needed a limit on concurrent scrapes.
def test_slow_clients_are_cut_off_and_do_not_keep_others_waiting(listener: Listener) -> None:
    idle = [connect(listener) for _ in range(4)]
    drip = connect(listener)
    drip.sendall(b"GET / HT")
    assert ask(listener, "GET / HTTP/1.1\r\n\r\n").startswith("HTTP/1.0 200")
    for client in (*idle, drip):
        assert "200" not in everything(client)  # it returns: the server has ended it
        client.close()
    assert ask(listener, "GET / HTTP/1.1\r\n\r\n").startswith("HTTP/1.0 200")


def test_a_client_that_drips_bytes_has_one_deadline_for_all_of_them(listener: Listener) -> None:
    stop = threading.Event()
    client = connect(listener)

    def drip() -> None:
        try:
            while not stop.wait(0.05):
                client.sendall(b"GET")
        except OSError:
            pass

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        assert within(5, lambda: listener.refused["too_slow"] > 0)
    finally:
        stop.set()
        thread.join()
        client.close()


def test_one_address_cannot_take_every_place() -> None:
    listener = Listener("127.0.0.1", 0, echo, patience_seconds=5)
    clients = [connect(listener) for _ in range(module.MOST_OF_ONE_ADDRESS)]
    try:
        assert within(5, lambda: ask(listener, "").startswith("HTTP/1.0 503"))
        assert listener.refused["busy"] >= 1
        other = socket.create_connection(("127.0.0.1", listener.port), timeout=5, source_address=("127.0.0.2", 0))
        other.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert everything(other).startswith("HTTP/1.0 200")
        other.close()
    finally:
        for client in clients:
            client.close()
        listener.close()


def certificate(folder: Path, name: str) -> None:
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", f"/CN={name}"]
    files = ["-keyout", str(folder / "k.pem"), "-out", str(folder / "c.pem")]
    subprocess.run(["openssl", *words, *files], check=True, capture_output=True)


def common_name(to: Listener) -> bytes:
    """The certificate that the server shows, as it stands on the wire."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with connect(to) as raw, context.wrap_socket(raw) as client:
        shown = client.getpeercert(binary_form=True) or b""
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert everything(client).startswith("HTTP/1.0 200")
        return shown


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_tls_renews_its_certificate_and_outlives_plain_and_silent_clients(tmp_path: Path) -> None:
    certificate(tmp_path, "first")
    listener = Listener("127.0.0.1", 0, echo, tls=Tls(tmp_path / "c.pem", tmp_path / "k.pem"), patience_seconds=2)
    try:
        with connect(listener):  # never shakes hands: it must not hold the accepting thread
            assert b"first" in common_name(listener)
        assert "200" not in ask(listener, "GET / HTTP/1.1\r\n\r\n")
        assert within(5, lambda: listener.refused["tls"] >= 1)
        certificate(tmp_path, "second")
        os.utime(tmp_path / "c.pem", ns=(1, 1))
        assert b"second" in common_name(listener)
        (tmp_path / "c.pem").write_text("half writ")
        assert b"second" in common_name(listener)
    finally:
        listener.close()


def test_ipv6() -> None:
    try:
        listener = Listener("::1", 0, echo)
    except OSError:
        pytest.skip("no IPv6 on this machine")
    try:
        with socket.create_connection(("::1", listener.port), timeout=5) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert "200 OK" in everything(client)
    finally:
        listener.close()

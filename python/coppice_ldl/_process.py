"""The process of the ``coppice`` binary that runs the commands of this interpreter."""

from __future__ import annotations

import atexit
import array
import collections
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import weakref
from typing import Any, Callable, Iterable, Optional, Sequence

from ._arrays import nameless
from ._binary import binary, unfit
from ._build import VERSION
from ._errors import InputError, ProcessError, failure
from ._parameters import utf8

if sys.platform == "win32":
    raise ImportError("coppice_ldl supports Linux and macOS, not Windows; on Windows, use it in the Windows Subsystem for Linux")

import fcntl  # Windows does not have it


class Result:
    """What a command wrote.

    Attributes
    ----------
    out : str
        What the command wrote to its standard output.
    notes : str
        What the command wrote to its standard error.
    """

    def __init__(self, out: str, notes: str) -> None:
        self.out = out
        self.notes = notes

    def json(self) -> Any:
        """Return the standard output as JSON."""
        return json.loads(self.out)


class _Call:
    """A command that runs."""

    def __init__(self, on_out: Optional[Callable[[str], None]], on_err: Optional[Callable[[str], None]]) -> None:
        self.on: dict[str, Optional[Callable[[str], None]]] = {"out": on_out, "err": on_err}
        self.texts: dict[str, list[str]] = {"out": [], "err": []}
        self.received: collections.deque[tuple[str, str]] = collections.deque()
        self.code: Optional[int] = None
        self.lost: Optional[str] = None
        self.changed = threading.Condition()

    def tell(self, frame: dict[str, Any]) -> None:
        """Take a frame. The thread that reads the socket calls it."""
        with self.changed:
            for key in ("out", "err"):
                if key in frame:
                    self.received.append((key, frame[key]))
            if "code" in frame:
                self.code = frame["code"]
            self.changed.notify_all()

    def fail(self, reason: str) -> None:
        with self.changed:
            self.lost = reason
            self.changed.notify_all()

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Pass on what the command writes until it ends. Return False after the timeout."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            with self.changed:
                while not self.received and self.code is None and self.lost is None:
                    left = None if end is None else end - time.monotonic()
                    if left is not None and left <= 0:
                        return False
                    self.changed.wait(left)
                received = list(self.received)
                self.received.clear()
                ended = self.code is not None or self.lost is not None
            for key, text in received:
                self.texts[key].append(text)
                handler = self.on[key]
                if handler is not None:
                    handler(text)
            if ended and not self.received:
                return True


# Variables that name a cluster. Other variables of the command line would change what a call does, so the process does not
# have them.
_CLUSTER_VARIABLES = ("COPPICE_SERVER", "COPPICE_CONTEXT", "COPPICE_TLS_DIR", "COPPICE_TOKEN_FILE", "COPPICE_CA_FILE")

# Variables of `fetch`: proxies and certificates.
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_NETWORK_VARIABLES = (*_PROXIES, *(name.lower() for name in _PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR")


def _environment() -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return what a process has from its start and commands depend on."""
    try:
        folder = os.getcwd()
    except OSError:
        folder = ""
    relevant = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "COPPICE_BINARY", *_CLUSTER_VARIABLES, *_NETWORK_VARIABLES)
    return folder, tuple((name, os.environ.get(name, "")) for name in relevant)


def _variables() -> dict[str, str]:
    """Return the variables of a process. Another thread may change the variables meanwhile."""
    while True:
        try:
            return {k: v for k, v in os.environ.copy().items() if not k.startswith("COPPICE_") or k in _CLUSTER_VARIABLES}
        except (KeyError, RuntimeError):
            continue


_HELLO = 20.0  # seconds in which a process states its version


def _above_standard(end: socket.socket) -> socket.socket:
    """Return a socket with a descriptor above 2. A process that is started replaces descriptors up to 2."""
    if end.fileno() > 2:
        return end
    with end:
        return socket.socket(fileno=fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, 3))


class _Process:
    """A running binary."""

    def __init__(self) -> None:
        self.environment = _environment()
        path = binary()
        ours, theirs = (_above_standard(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM))
        self.stderr = open(nameless("stderr"), "w+b")  # a crash of the process writes to it
        try:
            self.child = subprocess.Popen(
                [path, "library", "--socket", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self.stderr,
                start_new_session=True,
                env=_variables(),
            )
        except OSError as error:
            ours.close()
            self.stderr.close()
            advice = ""
            if isinstance(error, PermissionError):
                advice = "; the file is not executable, or its file system is mounted with noexec: copy it to another folder, run chmod +x on the copy, and name it in COPPICE_BINARY"
            raise ProcessError(f"{path}: cannot be started: {error.strerror}{advice}") from error
        finally:
            theirs.close()
        self.socket = ours
        self.sending = threading.Lock()
        self.guard = threading.Lock()
        self.calls: dict[int, _Call] = {}
        self.next = 1
        self.folders: weakref.WeakSet[Any] = weakref.WeakSet()  # temporary folders that it made
        self.ended: Optional[str] = None
        self.owner = os.getpid()
        self.reader = threading.Thread(target=self._read, name="coppice_ldl", daemon=True)
        try:
            ours.settimeout(_HELLO)
            hello = self._frame()
            ours.settimeout(None)
        except BaseException:
            self.child.kill()
            self.close()
            raise
        found = hello.get("version") if isinstance(hello, dict) else None
        if found != VERSION:
            self.child.kill()
            self.close()
            raise ProcessError(unfit(path, found))
        self.reader.start()

    def _exactly(self, n: int) -> bytes:
        parts = bytearray()
        while len(parts) < n:
            try:
                got = self.socket.recv(n - len(parts))
            except OSError:
                return b""
            if not got:
                return b""
            parts += got
        return bytes(parts)

    def _frame(self) -> Optional[dict[str, Any]]:
        """Read a frame, or return None at the end of the stream."""
        header = self._exactly(8)
        if not header:
            return None
        size, _ = struct.unpack("<II", header)
        text = self._exactly(size)
        return json.loads(text) if text else None

    def _read(self) -> None:
        try:
            while (frame := self._frame()) is not None:
                with self.guard:
                    call = self.calls.get(frame.get("id", 0))
                if call is not None:
                    call.tell(frame)
        except (AttributeError, KeyError, TypeError, ValueError):  # not a frame: calls must not wait for more
            self.child.kill()
        reason = "the process of coppice has ended"
        if self.owner == os.getpid():
            try:
                code = self.child.wait(5)
                if code < 0:
                    reason += f" by signal {-code}"
                elif code > 0:
                    reason += f" with exit code {code}"
            except subprocess.TimeoutExpired:
                pass
            self.stderr.seek(0)
            said = self.stderr.read(4096).decode(errors="replace").strip()
            if said:
                reason += f": {said}"
        with self.guard:
            self.ended = reason
            calls = list(self.calls.values())
        for call in calls:
            call.fail(reason)

    def _send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        text = json.dumps(message).encode()
        frame = struct.pack("<II", len(text), len(descriptors)) + text
        with self.sending:
            try:
                sent = 0
                if descriptors:
                    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                    sent = self.socket.sendmsg([frame], rights)
                self.socket.sendall(frame[sent:])
            except OSError as error:
                self.ended = "the process of coppice has ended; call again to start another"
                raise ProcessError(self.ended) from error
            except BaseException:  # an interrupt: a part of the frame may be sent, and nothing can follow it
                self.ended = "an interrupt has ended the process of coppice"
                self.socket.shutdown(socket.SHUT_RDWR)
                raise

    def run(
        self,
        args: Sequence[str],
        files: Sequence[tuple[str, int]],
        on_out: Optional[Callable[[str], None]],
        on_err: Optional[Callable[[str], None]],
        **more: str,
    ) -> Result:
        call = _Call(on_out, on_err)
        with self.guard:
            if self.ended is not None:
                raise ProcessError(self.ended)
            number = self.next
            self.next += 1
            self.calls[number] = call
        try:
            self._send({"id": number, "args": list(args), "names": [name for name, _ in files], **more}, [fd for _, fd in files])
            try:
                call.wait()
            except BaseException:
                self._cancel(number, call)
                raise
        finally:
            with self.guard:
                self.calls.pop(number, None)
        if call.lost is not None:
            raise ProcessError(call.lost)
        result = Result("".join(call.texts["out"]), "".join(call.texts["err"]))
        if call.code:
            raise failure(result.notes, call.code)
        return result

    def _cancel(self, number: int, call: _Call) -> None:
        """End a command. It is given a second."""
        call.on = {"out": None, "err": None}
        try:
            self._send({"id": number, "cancel": True})
            call.wait(1)
        except ProcessError:
            pass

    def close(self) -> None:
        """End the process."""
        try:
            if self.owner == os.getpid() and self.ended is None:
                self._send({"keep": True})
        except ProcessError:
            pass
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.socket.close()
        if self.owner != os.getpid():
            return
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
        if self.reader.is_alive():
            self.reader.join(5)
        self.stderr.close()

    def idle(self) -> bool:
        """Return True if no command runs, and no temporary folder is in use."""
        with self.guard:
            return not self.calls and not any(folder.cleanup.alive for folder in self.folders)


_guard = threading.RLock()
_current: Optional[_Process] = None
_retired: list[_Process] = []


def current() -> _Process:
    """Return the process of this interpreter, and start it if none fits."""
    global _current
    with _guard:
        for old in [p for p in _retired if p.idle()]:
            _retired.remove(old)
            old.close()
        if _current is not None and (_current.ended is not None or _current.environment != _environment()):
            _retired.append(_current)
            _current = None
        if _current is None:
            _current = _Process()
            if "multiprocessing.util" in sys.modules:  # its children do not run atexit
                sys.modules["multiprocessing.util"].Finalize(None, close, exitpriority=0)
        return _current


def run(
    args: Iterable[str],
    files: Sequence[tuple[str, int]] = (),
    on_out: Optional[Callable[[str], None]] = None,
    on_err: Optional[Callable[[str], None]] = None,
) -> Result:
    """Run a command.

    Parameters
    ----------
    args : iterable of str
        The command line. ``/dev/fd/@0`` stands for the first of `files`.
    files : sequence of (str, int)
        Names for messages, and descriptors.
    on_out, on_err : callable, optional
        Called with whole lines that the command writes.

    Raises
    ------
    CoppiceError
        If the command fails.
    """
    words = []
    for word in args:
        if not isinstance(word, str):
            raise InputError(f"{word!r} has the type {type(word).__name__}; want a text")
        words.append(utf8(word))
    return current().run(words, files, on_out, on_err)


def close() -> None:
    """End the process of this interpreter. The next call starts another."""
    global _current
    with _guard:
        for p in [*_retired, *([_current] if _current else [])]:
            p.close()
        _retired.clear()
        _current = None


def _forget() -> None:
    """Leave the process to the parent after a fork."""
    global _current, _guard
    for p in [*_retired, *([_current] if _current else [])]:
        os.close(p.socket.detach())
        p.stderr.close()
        p.child.returncode = 0  # it is not a child of this process
    _retired.clear()
    _current = None
    _guard = threading.RLock()


atexit.register(close)
os.register_at_fork(after_in_child=_forget)

"""Public datasets from a server of this machine."""

from __future__ import annotations

import hashlib
import http.server
import pathlib
import threading
from typing import Any, Iterator

import numpy as np
import pytest

from coppice_ldl import CoppiceError, InputError, StructRF, datasets

CLASSES = "".join(f"{i},{i % 3},{'abc'[i % 3]}\n" for i in range(30)).encode()


class Host(http.server.ThreadingHTTPServer):
    """A server that has a file at every address."""

    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Host

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(CLASSES)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def host() -> Iterator[Host]:
    with Host(("127.0.0.1", 0), Handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def listed(folder: pathlib.Path, *lines: tuple[str, ...]) -> pathlib.Path:
    """Write a list of datasets."""
    path = folder / "sets.tsv"
    header = ("name", "file", "address", "sha256", "read", "licence", "citation")
    path.write_text("".join("\t".join(line) + "\n" for line in (header, *lines)))
    return path


def test_fetch(host: Host, tmp_path: pathlib.Path) -> None:
    """A dataset is fetched once and read with the flags of the list, which options replace."""
    read = "--labels class --label-columns last --header no"
    sha = hashlib.sha256(CLASSES).hexdigest()
    path = listed(tmp_path, ("classes", "classes.csv", f"{host.url}/a", sha, read, "CC BY 4.0", "Somebody 2020"), ("bare", "bare.csv", f"{host.url}/b"))
    folder = tmp_path / "data"
    for _ in range(2):
        data = datasets.fetch("classes", folder, from_=path)
        assert data.X.shape == (30, 2) and data.label_names == ["a", "b", "c"]
        assert data.notes[-2:] == ["licence: CC BY 4.0", "citation: Somebody 2020"]
    assert host.asked == ["/a"] and [one.name for one in folder.iterdir()] == ["classes.csv"]
    StructRF(trees=2).fit(data.X, data.D)
    assert datasets.fetch("classes", folder, from_=path, drop="0").X.shape == (30, 1)
    data = datasets.fetch("bare", folder, from_=path, sha256=sha, labels="class", label_columns="last", header=False)
    assert np.array_equal(data.D.sum(0), [10, 10, 10])


def test_fetch_refuses(host: Host, tmp_path: pathlib.Path) -> None:
    """Errors have the names of arguments, and leave nothing."""
    path = listed(tmp_path, ("bare", "bare.csv", f"{host.url}/b"), ("wrong", "wrong.csv", f"{host.url}/b", "0" * 64))
    folder = tmp_path / "data"
    with pytest.raises(InputError, match="give sha256=HEX"):
        datasets.fetch("bare", folder, from_=path)
    with pytest.raises(CoppiceError, match="has the SHA-256 .*; want 0000"):
        datasets.fetch("wrong", folder, from_=path)
    with pytest.raises(CoppiceError, match="no such dataset; it has bare"):
        datasets.fetch("Bare", folder, from_=path)
    with pytest.raises(TypeError, match="fetch: there is no option labls; did you mean labels"):
        datasets.fetch("bare", folder, from_=path, labls="class")
    with pytest.raises(InputError, match="has the type int"):
        datasets.fetch(3)  # type: ignore[arg-type]
    assert not folder.exists()


def test_proxy(host: Host, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy that the environment names after the first call is used."""
    datasets.generate(rows=5)  # the process of the binary runs already
    monkeypatch.setenv("HTTP_PROXY", host.url)
    monkeypatch.setenv("NO_PROXY", "")
    sha = hashlib.sha256(CLASSES).hexdigest()
    path = listed(tmp_path, ("set", "set.csv", "http://data.invalid/set.csv", sha, "--labels class --label-columns last --header no"))
    assert datasets.fetch("set", tmp_path, from_=path).X.shape == (30, 2)
    assert host.asked == ["http://data.invalid/set.csv"]

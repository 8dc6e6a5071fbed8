"""Roles on a cluster with TLS: what they may do works, and everything else raises RefusedError with the role."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
from typing import Any, Iterator

import pytest

import coppice_ldl
from coppice_ldl import Client, CoppiceError, InputError, NotFoundError, RefusedError, StructRF, UnavailableError, experiment
from conftest import cluster, make

FOREST = StructRF(trees=3)


@dataclasses.dataclass
class Secured:
    """A cluster with TLS, and the files of its users."""

    server: str
    folder: pathlib.Path

    @property
    def certs(self) -> pathlib.Path:
        return self.folder / "disks" / "certs"

    @property
    def ca_file(self) -> str:
        return str(self.certs / "ca.crt")

    def admin(self, *args: str) -> Any:
        """Run a command as the admin of the cluster."""
        return run(*args, "--server", self.server, "--tls-dir", str(self.certs / "admin"))

    def token(self, user: str) -> dict[str, str]:
        """Return the arguments with a token of a user."""
        return {"server": self.server, "token_file": str(self.folder / f"{user}.token"), "ca_file": self.ca_file}


def run(*args: str) -> Any:
    done = subprocess.run([coppice_ldl.binary(), *args, "-o", "json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    with cluster(folder, "--tls", "--coordinators", "1", "--workers", "1") as server:
        made = Secured(server, folder)
        for role in ("admin", "submit", "read"):
            made.admin("token", "create", f"{role}-user", "--role", role, "--out", str(folder / f"{role}.token"))
            run("certs", "client", f"{role}-person", "--role", role, "--ca-dir", str(made.certs), "--out", str(folder / f"{role}.certs"))
        yield made



def test_admin(secured: Secured) -> None:
    X, D = make(60)
    who = secured.token("admin")
    model = StructRF(trees=3).fit(X, D, **who, name="of-admin")
    assert model.model_digest_ == StructRF(trees=3).fit(X, D).model_digest_
    client = Client(**who)
    assert client.job("of-admin")["owner"] == "admin-user"
    StructRF(trees=3).fit(X, D, **secured.token("submit"), name="of-submit-1")
    client.job("of-submit-1").delete()
    client.import_dataset(X + 1, D, name="short-lived", verbose=False)
    client.delete_dataset("short-lived")
    assert {"of-admin"} <= set(client.jobs()["name"]) and "of-submit-1" not in set(client.jobs()["name"])


def test_submit(secured: Secured) -> None:
    X, D = make(60)
    who = secured.token("submit")
    client = Client(**who)
    model = StructRF(trees=3).fit(X, D, **who, name="of-submit")
    assert model.model_digest_ == StructRF(trees=3).fit(X, D).model_digest_
    assert client.job("of-submit")["owner"] == "submit-user"
    assert client.submit(FOREST, X, D, name="also-of-submit").wait(verbose=False).model().model_digest_ == model.model_digest_
    assert set(client.jobs(mine=True)["name"]) >= {"of-submit", "also-of-submit"}
    spec = {"name": "of-submit", "folds": 2, "datasets": [{"name": "sixty", "X": X, "D": D}], "methods": [FOREST]}
    assert len(experiment(spec, **who, verbose=False).runs) == 2
    client.job("also-of-submit").delete()
    StructRF(trees=3).fit(X, D, **secured.token("admin"), name="not-of-submit")
    with pytest.raises(RefusedError, match=r"submit-user \(role submit\)"):
        client.job("not-of-submit").delete()
    with pytest.raises(RefusedError, match=r"submit-user \(role submit\)"):
        client.delete_dataset("quickstart")
    assert client.job("not-of-submit").state == "done"


def test_read(secured: Secured) -> None:
    X, D = make(60)
    StructRF(trees=3).fit(X, D, **secured.token("submit"), name="to-be-read")
    Client(**secured.token("submit")).job("to-be-read").share()
    who = secured.token("read")
    client = Client(**who)
    assert "to-be-read" in set(client.jobs()["name"])
    assert client.model("to-be-read").model_digest_ == StructRF(trees=3).fit(X, D).model_digest_
    assert len(client.job("to-be-read").learning_curve()) > 0 and client.status()["workers"]
    jobs, datasets = len(client.jobs()), len(client.datasets())
    spec = {"name": "of-read", "folds": 2, "datasets": [{"name": "read-data", "X": X, "D": D}], "methods": [FOREST]}
    for refused in (
        lambda: StructRF(trees=3).fit(X, D, **who),
        lambda: StructRF(trees=3).fit(X + 2, D, **who),
        lambda: client.submit(FOREST, X, D),
        lambda: client.submit(FOREST, "quickstart"),
        lambda: client.import_dataset(X, D, name="read-data", verbose=False),
        lambda: client.job("to-be-read").delete(),
        lambda: client.delete_model("to-be-read"),
        lambda: client.delete_dataset("quickstart"),
        lambda: experiment(spec, **who, verbose=False),
    ):
        with pytest.raises(RefusedError, match=r"read-user \(role read\) may not .*needs the role submit") as caught:
            refused()
        assert isinstance(caught.value, PermissionError)
    assert (len(client.jobs()), len(client.datasets())) == (jobs, datasets)


def test_no_identity(secured: Secured) -> None:
    X, D = make(60)
    with pytest.raises(RefusedError, match="answers only callers with an identity; give `tls_dir` .*`token_file`"):
        StructRF(trees=3).fit(X, D, server=secured.server, ca_file=secured.ca_file)
    with pytest.raises(RefusedError, match="answers only callers with an identity"):
        Client(secured.server, ca_file=secured.ca_file).jobs()
    with pytest.raises(UnavailableError, match="the server uses TLS, but this command does not"):
        Client(secured.server).jobs()
    with pytest.raises(InputError, match="none.token: no such file"):
        Client(secured.server, ca_file=secured.ca_file, token_file="none.token").jobs()


def test_other_authorities(secured: Secured, tmp_path: pathlib.Path) -> None:
    """A cluster with a certificate of other authorities is refused, and asking again does not help."""
    X, D = make(60)
    run("certs", "init", "--ca-dir", str(tmp_path / "others"))
    who = {**secured.token("submit"), "ca_file": str(tmp_path / "others" / "ca.crt")}
    for call in (lambda: Client(**who).jobs(), lambda: StructRF(trees=3).fit(X, D, **who)):
        with pytest.raises(RefusedError, match="certificate of the other side is refused.*no authority in .* has signed it"):
            call()


def test_a_token_is_not_shown(secured: Secured, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token in place of a file or an address is refused, and no text has it."""
    X, D = make(60)
    token = (secured.folder / "submit.token").read_text().strip()
    secret = token.rpartition("_")[2]
    spec = {"name": "tokens", "folds": 2, "datasets": [{"name": "sixty", "X": X, "D": D}], "methods": [FOREST]}
    for given in (token, f" {token}\n", token[:-8], "Bearer " + token):
        who = {**secured.token("submit"), "token_file": given}
        for call in (
            lambda: Client(**who),
            lambda: StructRF(trees=3).fit(X, D, **who),
            lambda: experiment(spec, **who, verbose=False),
        ):
            with pytest.raises(InputError, match="the value looks like a token; write the token to a file") as caught:
                call()
            assert secret[:-8] not in repr(caught.value) + str(caught.value)
    for name in ("server", "ca_file", "tls_dir", "context"):
        with pytest.raises(CoppiceError) as caught:
            client = Client(**{name: token})
            assert secret not in repr(client)
            client.jobs()
        assert secret not in repr(caught.value) + str(caught.value)
    monkeypatch.setenv("COPPICE_TOKEN_FILE", token)
    with pytest.raises(InputError, match="looks like a token"):
        Client(secured.server, ca_file=secured.ca_file).jobs()
    done = subprocess.run([coppice_ldl.binary(), "context", "set", "t", "--server", "a", "--token-file", token], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and secret not in done.stderr


def test_revoked_token(secured: Secured) -> None:
    X, D = make(60)
    created = secured.admin("token", "create", "leaver", "--role", "submit", "--out", str(secured.folder / "leaver.token"))
    who = secured.token("leaver")
    StructRF(trees=3).fit(X, D, **who, name="of-leaver")
    secured.admin("token", "revoke", created["id"])
    with pytest.raises(RefusedError, match="token"):
        StructRF(trees=3).fit(X, D, **who)
    with pytest.raises(RefusedError, match="token"):
        Client(**who).jobs()
    assert Client(**secured.token("read")).job("of-leaver").state == "done"


@pytest.mark.parametrize("role", ["admin", "submit", "read"])
def test_certificates(secured: Secured, role: str) -> None:
    X, D = make(60)
    client = Client(secured.server, tls_dir=str(secured.folder / f"{role}.certs"))
    assert "quickstart" in set(client.datasets()["name"])
    if role == "read":
        with pytest.raises(RefusedError, match=r"read-person \(role read\) may not"):
            StructRF(trees=3).fit(X, D, server=secured.server, tls_dir=str(secured.folder / "read.certs"))
    else:
        StructRF(trees=3).fit(X, D, server=secured.server, tls_dir=str(secured.folder / f"{role}.certs"), name=f"by-{role}-person")
        assert client.job(f"by-{role}-person")["owner"] == f"{role}-person"


def test_contexts(secured: Secured, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, D = make(60)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("COPPICE_SERVER", "COPPICE_CONTEXT", "COPPICE_TLS_DIR", "COPPICE_TOKEN_FILE", "COPPICE_CA_FILE"):
        monkeypatch.delenv(name, raising=False)
    for role in ("submit", "read"):
        given = secured.token(role)
        run("context", "set", role, "--server", given["server"], "--ca-file", given["ca_file"], "--token-file", given["token_file"])
    assert "quickstart" in set(Client(context="read").datasets()["name"])
    assert "quickstart" in set(Client().datasets()["name"]), "the first context is the current one"
    model = StructRF(trees=3).fit(X, D, context="submit", name="by-context")
    assert model.model_digest_ == StructRF(trees=3).fit(X, D).model_digest_
    with pytest.raises(RefusedError, match=r"\(role read\) may not"):
        StructRF(trees=3).fit(X, D, context="read")
    monkeypatch.setenv("COPPICE_CONTEXT", "read")
    with pytest.raises(RefusedError, match=r"read-user \(role read\) may not"):
        Client().submit(FOREST, X, D)
    monkeypatch.setenv("COPPICE_CONTEXT", "submit")
    assert Client().submit(FOREST, X, D, name="by-variable").wait(verbose=False)["owner"] == "submit-user"
    with pytest.raises(InputError, match='has no context "prod"'):
        Client(context="prod").jobs()
    with pytest.raises(NotFoundError):
        Client(context="read").job("never")
    assert os.listdir(tmp_path) == ["coppice"]

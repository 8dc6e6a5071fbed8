"""The description of the HTTP API, and a client that a generator makes of it."""

from __future__ import annotations

import importlib
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

from coppice_ldl import SABFGS, Client, load
from conftest import make


@pytest.fixture(scope="module")
def document(server: str) -> dict:
    with urllib.request.urlopen(f"http://{server}/v1/openapi.json") as answer:
        assert answer.headers["Content-Type"] == "application/json"
        return json.load(answer)


def test_document_is_valid(document: dict) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document)


def test_validator_finds_mistakes(document: dict) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    wrong = json.loads(json.dumps(document))
    del wrong["paths"]["/v1/jobs/{job}"]["get"]["responses"]
    wrong["paths"]["/v1/jobs/{job}"]["get"]["parameters"][0]["in"] = "nowhere"
    with pytest.raises(Exception):
        validator.validate(wrong)


@pytest.fixture(scope="module")
def api(document: dict, tmp_path_factory: pytest.TempPathFactory):
    """Return a module that imports modules of the generated client."""
    pytest.importorskip("openapi_python_client")
    folder: pathlib.Path = tmp_path_factory.mktemp("client")
    (folder / "api.json").write_text(json.dumps(document))
    (folder / "config.yaml").write_text("project_name_override: generated-api\npackage_name_override: generated_api\npost_hooks: []\n")
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", "generate", "--path", "api.json", "--config", "config.yaml", "--meta", "none", "--output-path", "generated_api"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # The generator has no type for streams of lines, and warns of nothing else.
    warnings = done.stdout + done.stderr
    assert warnings.count("WARNING") == warnings.count("Unsupported content_type application/jsonl"), warnings
    sys.path.insert(0, str(folder))
    yield lambda name: importlib.import_module("generated_api" + name)
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == "generated_api"]:
        del sys.modules[name]
    shutil.rmtree(folder)


def test_generated_client(api, server: str, tmp_path: pathlib.Path) -> None:
    X, D = make(60)
    local = SABFGS().fit(X, D, server=server, name="for-the-data")
    name = Client(server).job("for-the-data")["dataset"]

    models = api(".models")
    http = api("").Client(base_url=f"http://{server}")
    request = models.SubmitRequest(token="generated-1", spec=models.JobSpec(algorithm="sa-bfgs", dataset=name, name="generated"))
    submit = api(".api.jobs.submit_job")
    job = submit.sync(client=http, body=request)
    assert isinstance(job, models.JobInfo) and job.name == "generated", job
    assert submit.sync(client=http, body=request).id == job.id  # the same token makes no second job

    lines = api(".api.jobs.watch_job").sync_detailed(job="generated", client=http).content.splitlines()
    states = [json.loads(line)["state"] for line in lines if line.strip()]
    assert states[-1] == "done"
    ended = api(".api.jobs.get_job").sync(job="generated", client=http)
    assert ended.state == "done" and ended.models[0].digest == local.model_digest_

    listed = api(".api.models.list_models").sync(client=http, name="gener*", sort=models.ListModelsSort("-time"), limit=5)
    assert [one.name for one in listed] == ["generated"]
    path = tmp_path / "generated.model"
    path.write_bytes(api(".api.models.get_model").sync(name="generated", client=http).payload.read())
    assert np.array_equal(load(path).predict(X), local.predict(X))

    missing = api(".api.jobs.get_job").sync(job="nobody", client=http)
    assert isinstance(missing, models.Problem) and missing.kind == "not_found"

"""Members of an ensemble as estimators, dicts and texts."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from coppice_ldl import AAKNN, SABFGS, Client, Ensemble, InputError, Ranking, StructRF, experiment, load
from coppice_ldl._parameters import members_text
from conftest import make

SAME: dict[str, Any] = {
    "a text": "structrf:trees=5,sa-bfgs:preset=paper:iterations=20",
    "texts": ["structrf:trees=5", "sa-bfgs:preset=paper:iterations=20"],
    "estimators": [StructRF(trees=5, n_jobs=1), SABFGS(preset="paper", iterations=20)],
    "dicts": [{"algorithm": "structrf", "trees": 5}, {"algorithm": "sa-bfgs", "settings": {"iterations": 20}, "preset": "paper"}],
    "a mixture": (StructRF(trees=5), "sa-bfgs:preset=paper:iterations=20"),
}


def ensemble(members: Any) -> Ensemble:
    return Ensemble(members=members, inner_folds=2)


@pytest.fixture(scope="module")
def digest() -> str:
    return ensemble(SAME["a text"]).fit(*make(60)).model_digest_


@pytest.mark.parametrize("kind", list(SAME))
def test_fit(kind: str, digest: str) -> None:
    estimator = ensemble(SAME[kind])
    assert estimator.fit(*make(60)).model_digest_ == digest
    assert estimator.members is SAME[kind]
    assert pickle.loads(pickle.dumps(estimator)).model_digest_ == digest
    again = load(estimator.model_)
    assert again.fit(*make(60)).model_digest_ == digest


def test_clone(digest: str) -> None:
    base = pytest.importorskip("sklearn.base")
    assert base.clone(ensemble(SAME["estimators"])).fit(*make(60)).model_digest_ == digest


def test_submit(server: str, digest: str) -> None:
    client = Client(server)
    for name, kind in (("of-estimators", "estimators"), ("of-dicts", "dicts")):
        assert client.submit(ensemble(SAME[kind]), *make(60), name=name).wait(verbose=False)["result"]["model_digest"] == digest


def test_experiment() -> None:
    X, D = make(60)
    methods = [{"estimator": ensemble(members), "name": kind} for kind, members in SAME.items()]
    methods.append({"algorithm": "ensemble", "name": "a dict", "settings": {"inner_folds": 2, "members": SAME["estimators"]}})
    report = experiment({"name": "members", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": methods}, verbose=False)
    found = {one["method"]: set() for one in report.json()["results"][0]["lines"]}
    runs = report.runs.to_dict("records") if hasattr(report.runs, "to_dict") else report.runs
    for one in runs:
        found[one["method"]].add(one["digest"])
    assert len(found) == 6 and len({tuple(sorted(one)) for one in found.values()}) == 1


def test_spelling() -> None:
    assert members_text([Ranking(lambda_=0.25)]) == "ranking:lambda=0.25"
    assert members_text([{"algorithm": "dldl", "hidden": [8, 4]}, AAKNN()]) == 'dldl:hidden="8,4",aa-knn'
    assert members_text([{"algorithm": "structrf", "x y": 'ü"'}]) == 'structrf:"x y"="\\u00fc\\""'


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (AAKNN(), r"members=AAKNN\(\): want a list of estimators"),
        ([], r"members=\[\]: want a list"),
        ({"algorithm": "aa-knn"}, "want a list"),
        (3, "members=3: want a list"),
        ([AAKNN, SABFGS()], r"members\[0\]: .*give AAKNN\(\)"),
        ([SABFGS(), 7], r"members\[1\]: 7 is not an estimator, a dict or a text"),
        ([SABFGS(), {"trees": 3}], r"members\[1\]: .* has no algorithm"),
        ([SABFGS(), {"algorithm": "aa-knn", "k": None}], r"members\[1\]: k=None is no setting"),
        ([SABFGS(), {"algorithm": "aa-knn", "settings": 3}], r"members\[1\]: settings=3 is not a dict"),
        ([SABFGS(), {"algorithm": "aa-knn", "k": 3, "settings": {"k": 4}}], r"members\[1\]: k is given twice"),
        ([SABFGS(), AAKNN(random_state=3)], r"members\[1\]: .* has random_state, which the ensemble decides"),
        ([AAKNN(random_state=0)], "has random_state, which the ensemble decides"),
        ([AAKNN(missing=0)], "has missing, which the ensemble decides"),
        ([SABFGS(), Ensemble(members="aa-knn,sa-bfgs")], r"members\[1\]: an ensemble cannot be a member"),
        ([SABFGS(), ""], r"members\[1\]: the text is empty"),
        ([SABFGS(), "strutrf"], 'did you mean "structrf"'),
        ([SABFGS(), {"algorithm": "aa-knn", "kk": 3}], "kk"),
        ([SABFGS()], "got 1 member, want 2 to 20"),
    ],
)
def test_wrong_members(members: Any, text: str) -> None:
    X, D = make(30)
    with pytest.raises(InputError, match=text):
        Ensemble(members=members).fit(X, D)
    with pytest.raises(InputError, match=text):
        experiment({"name": "w", "folds": 2, "datasets": [{"name": "d", "X": X, "D": D}], "methods": [Ensemble(members=members)]}, verbose=False)


def test_members_in_a_search() -> None:
    """Members that are estimators have the names of make_union, and searches set their parameters. Clones share nothing."""
    selection, base = pytest.importorskip("sklearn.model_selection"), pytest.importorskip("sklearn.base")
    X, D = make(60)
    estimator = Ensemble(members=[StructRF(trees=5), AAKNN(k=2), AAKNN(k=3), "sa-bfgs"], inner_folds=2)
    deep = estimator.get_params()
    assert deep["structrf"] is estimator.members[0] and deep["structrf__trees"] == 5
    assert (deep["aaknn-1__k"], deep["aaknn-2__k"]) == (2, 3)
    assert not any("__" in name for name in estimator.get_params(deep=False))
    search = selection.GridSearchCV(estimator, {"structrf__trees": [2, 3], "aaknn-2": [AAKNN(k=4)]}, cv=2).fit(X, D)
    best = search.best_estimator_.members
    assert best[0].trees in (2, 3) and best[1].k == 2 and best[2].k == 4 and best[3] == "sa-bfgs"
    assert estimator.members[0].trees == 5 and estimator.members[2].k == 3, "the search changed the estimator that it was given"
    copy = base.clone(estimator).set_params(structrf=StructRF(), structrf__trees=9, weights="mean")
    assert (copy.members[0].trees, copy.weights, estimator.members[0].trees) == (9, "mean", 5)
    with pytest.raises(ValueError, match="need members that are estimators"):
        Ensemble().set_params(structrf__trees=3)
    with pytest.raises(ValueError, match="Invalid parameter 'leaves'"):
        estimator.set_params(structrf__leaves=3)


def test_a_single_unknown_member() -> None:
    """A name that no algorithm has is said, not the number of members."""
    for members in (["typo"], "typo", ["typo", "aa-knn"]):
        with pytest.raises(InputError, match='algorithm "typo" is unknown; possible members are ldlf, structrf, '):
            Ensemble(members=members).fit(*make(40))

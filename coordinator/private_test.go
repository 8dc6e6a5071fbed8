package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/experiment/remote"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/tempdir"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// private is a cluster on which sam has made a dataset, a job with predictions, and an experiment with records and
// models.
type private struct {
	*secured
	users      map[string]*certs.Source
	set        *protocol.Dataset
	job, study *protocol.JobInfo
}

func startPrivate(ctx context.Context, t *testing.T) *private {
	t.Helper()
	p := &private{secured: secure(t, 3), users: make(map[string]*certs.Source)}
	p.startAll(2)
	for name, role := range map[string]string{"sam": "submit", "eve": "submit", "rita": "read", "root": "admin"} {
		p.users[name] = p.authority.User(name, role)
	}
	p.users["model server sam"] = p.authority.Source(certs.Serve, "sam") // it has the name of the owner
	sam := p.clientOf(p.users["sam"])
	var err error
	if p.set, err = sam.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	spec := testSpec(map[string]string{"steps": "20", "trees": "2", "depth": "3"})
	spec.Name, spec.TestFraction, spec.KeepPredictions = "forest", 0.2, new(int64(1<<20))
	j, err := sam.Jobs().Submit(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if p.job, err = sam.Jobs().Watch(ctx, j.Name, func(*protocol.JobInfo) {}); err != nil ||
		p.job.State != protocol.Done || p.job.Predictions == nil {
		t.Fatalf("%+v, %v", p.job, err)
	}
	plan, err := sam.Experiments().Submit(ctx, protocol.ExperimentRequest{
		Spec: "name: e\ndatasets: [{dataset: art}]\nfolds: 2\nmethods: [aa-knn]\n", Record: []string{"predictions"},
		KeepModels: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p.study, err = sam.Jobs().Watch(ctx, plan.Jobs[0].Name, func(*protocol.JobInfo) {}); err != nil ||
		p.study.State != protocol.Done {
		t.Fatalf("%+v, %v", p.study, err)
	}
	return p
}

// paths are the requests that read what sam has made.
func (p *private) paths() []string {
	return []string{
		"/v1/blobs/" + p.set.Manifest.Shards[0].Digest,
		"/v1/blobs/" + p.job.Predictions.Blob,
		"/v1/blobs/" + p.job.Models[0].Blob,
		"/v1/blobs/" + p.study.Outline,
		"/v1/jobs/" + p.study.Name + "/runs?records=true",
		"/v1/experiments/e/report",
		"/v1/models/forest",
		"/v1/models/" + p.job.Models[0].Digest,
		"/v1/models/" + p.study.Name + "/" + p.study.Models[0].Digest,
	}
}

// read checks the answers of all coordinators to the requests of a user that read what sam has made.
func (p *private) read(ctx context.Context, who string, allowed bool) {
	p.t.Helper()
	for _, path := range p.paths() {
		want := http.StatusOK
		switch blob, model := strings.HasPrefix(path, "/v1/blobs/"), strings.HasPrefix(path, "/v1/models/"); {
		case strings.HasPrefix(who, "model server") && !model: // its role may not ask
			want = http.StatusForbidden
		case who == "rita" && path == p.paths()[0]: // her role reads no samples
			want = http.StatusNotFound
		case !allowed && blob:
			want = http.StatusNotFound // as if there were no such blob
		case !allowed:
			want = http.StatusForbidden
		}
		for i := range p.peers {
			p.answers(ctx, p.users[who], i, http.MethodGet, path, want)
		}
	}
	for path, others := range p.visible() {
		want := http.StatusOK
		if strings.HasPrefix(who, "model server") && others[rights.Serve] == rights.None &&
			others[rights.Anonymous] == rights.None {
			want = http.StatusForbidden
		}
		p.answers(ctx, p.users[who], 0, http.MethodGet, path, want)
	}
}

// visible are the paths of all other requests that all users may make, and what other roles may do. A request that
// shows what is private must be one of paths.
func (p *private) visible() map[string]map[rights.Role]rights.Access {
	all := make(map[string]map[rights.Role]rights.Access)
	names := map[string]string{"/v1/datasets/{name}": "/v1/datasets/art", "/v1/experiments/{name}": "/v1/experiments/e",
		"{job}": p.study.Name}
	for _, r := range rights.Requests {
		path, get := strings.CutPrefix(r.Pattern, "GET ")
		if !get || r.Role != rights.Read || r.Kind&rights.Stream != 0 {
			continue
		}
		for pattern, name := range names {
			path = strings.Replace(path, pattern, name, 1)
		}
		if !slices.ContainsFunc(p.paths(), func(private string) bool {
			return path == private || strings.Contains(path, "{")
		}) {
			all[path] = r.Others
		}
	}
	return all
}

// post sends a request with a certificate, and returns the status of the answer.
func (p *private) post(ctx context.Context, who, path string, body any) int {
	p.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+p.port(0, 0)+path, bytes.NewReader(b))
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := browser(p.t, p.users[who].Dir()).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body) // the status counts
	return answer.StatusCode
}

// TestPrivate: what a user makes is read by this user and by admins, at every coordinator, until it is shared.
func TestPrivate(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	p := startPrivate(ctx, t)
	if !p.set.Private || !p.job.Private || !p.study.Private || p.set.Owner != "sam" {
		t.Errorf("%+v", p.set)
	}
	sam, eve := p.clientOf(p.users["sam"]), p.clientOf(p.users["eve"])
	for who, allowed := range map[string]bool{"sam": true, "root": true, "eve": false, "rita": false,
		"model server sam": false} {
		p.read(ctx, who, allowed)
	}
	uses := map[string]func() error{
		"a job": func() error {
			_, err := eve.Jobs().Submit(ctx, testSpec(map[string]string{"steps": "1"}))
			return err
		},
		"an experiment":          func() error { _, err := eve.Experiments().Submit(ctx, onArt("f")); return err },
		"a check":                func() error { _, err := eve.Experiments().Check(ctx, onArt("f")); return err },
		"the runs":               func() error { _, err := remote.Read(ctx, eve, "e", remote.Options{}); return err },
		"sharing the dataset":    func() error { _, err := eve.Datasets().Share(ctx, "art"); return err },
		"sharing the job":        func() error { _, err := eve.Jobs().Share(ctx, "forest"); return err },
		"sharing the experiment": func() error { _, err := eve.Experiments().Share(ctx, "e"); return err },
	}
	for what, use := range uses {
		if err := use(); status(err) != http.StatusForbidden && what != "the runs" ||
			!strings.Contains(fmt.Sprint(err), "sam") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if d, err := sam.Datasets().Share(ctx, "art"); err != nil || d.Private {
		t.Errorf("%+v, %v", d, err)
	}
	if j, err := sam.Jobs().Share(ctx, "forest"); err != nil || j.Private || j.State != protocol.Done {
		t.Errorf("%+v, %v", j, err)
	}
	if x, err := p.clientOf(p.users["root"]).Experiments().Share(ctx, "e"); err != nil || x.Private ||
		len(x.Changed) != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	for who := range p.users {
		p.read(ctx, who, true)
	}
	for what, use := range uses {
		if err := use(); err != nil && !strings.HasPrefix(what, "sharing") {
			t.Errorf("of what is shared, %s: %v", what, err)
		}
	}
	p.restartAll(ctx)
	if _, err := eve.Blobs().Get(ctx, p.job.Predictions.Blob); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

// onArt is an experiment on the dataset art.
func onArt(name string) protocol.ExperimentRequest {
	return protocol.ExperimentRequest{Spec: "name: " + name +
		"\ndatasets: [{dataset: art}]\nfolds: 2\nmethods: [aa-knn]\n"}
}

// TestPrivateExperiments: what is private stays so if runs are added to an experiment, by its owner or by an admin.
func TestPrivateExperiments(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	p := startPrivate(ctx, t)
	sam, eve := p.clientOf(p.users["sam"]), p.clientOf(p.users["eve"])
	ended := onArt("ended")
	ended.Spec = strings.Replace(ended.Spec, "folds: 2", "folds: {k: 5, repeats: 100}", 1)
	if _, err := sam.Experiments().Submit(ctx, ended); err != nil {
		t.Fatal(err)
	}
	if _, err := sam.Experiments().Cancel(ctx, "ended"); err != nil {
		t.Fatal(err)
	}
	x, err := sam.Experiments().Show(ctx, "ended")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := eve.Experiments().Retry(ctx, "ended", false); status(err) != http.StatusForbidden {
		t.Errorf("runs of another's experiment are submitted again: %v", err)
	}
	for i := range p.peers {
		p.answers(ctx, p.users["eve"], i, http.MethodGet, "/v1/blobs/"+x.Outline, http.StatusNotFound)
	}
	// One shared job does not make later jobs of its experiment public, and an admin gives no samples away.
	more := onArt("ended")
	more.Spec = strings.Replace(more.Spec, "folds: 2", "folds: 3", 1)
	root := p.clientOf(p.users["root"])
	if _, err := root.Datasets().Import(ctx, protocol.DatasetPut{Name: "rootset"}, generate.Artificial(300, 3),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	more.LeaveOut, more.Spec = true, strings.Replace(more.Spec, "{dataset: art}", "{dataset: rootset}", 1)
	if _, err := root.Experiments().Submit(ctx, more); status(err) != http.StatusForbidden ||
		!strings.Contains(err.Error(), "coppice dataset share rootset") {
		t.Errorf("an admin's private dataset in sam's experiment: %v", err)
	}
	for _, methods := range []string{"[aa-knn, sa-bfgs]", "[aa-knn, sa-bfgs, ldsvr]"} {
		again := onArt("e")
		again.Spec = strings.Replace(again.Spec, "[aa-knn]", methods, 1)
		plan, err := sam.Experiments().Submit(ctx, again)
		if err != nil || len(plan.Jobs) != 1 || !plan.Jobs[0].Private {
			t.Fatalf("%s: %+v, %v", methods, plan, err)
		}
		if _, err := sam.Jobs().Share(ctx, plan.Jobs[0].Name); err != nil {
			t.Error(err)
		}
	}
}

// TestDigestsGrantNothing: everybody sees the digests of blobs. A user may use a blob of others only after it has sent
// the bytes, and does not learn whether the cluster has them.
func TestDigestsGrantNothing(t *testing.T) {
	testkit.WithoutRace(t)
	t.Parallel()
	ctx := deadline(t)
	p := startPrivate(ctx, t)
	sam, eve := p.clientOf(p.users["sam"]), p.clientOf(p.users["eve"])
	if _, err := eve.Datasets().Import(ctx, protocol.DatasetPut{Name: "own"}, generate.Artificial(300, 2),
		importer.Options{}); err != nil {
		t.Fatal(err)
	}
	own := testSpec(map[string]string{"steps": "1"})
	own.TestFraction, own.Dataset, own.Folds, own.Assigned = 0, "own", 3, p.job.Predictions.Blob
	if _, err := eve.Jobs().Submit(ctx, own); status(err) != protocol.StatusSendBlob {
		t.Errorf("another's blob as a split: %v", err)
	}
	deep := deepSpec(map[string]string{"init_from": p.job.Models[0].Blob})
	deep.Dataset = "own"
	if _, err := eve.Jobs().Submit(ctx, deep); status(err) != protocol.StatusSendBlob {
		t.Errorf("another's model as weights: %v", err)
	}
	if _, err := eve.Datasets().Import(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{}); !client.IsConflict(err) || !strings.Contains(err.Error(), "private") {
		t.Errorf("the name of another's dataset: %v", err)
	}
	dir, err := tempdir.Make("private")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Remove()
	m, err := importer.Import(generate.Artificial(600, 1), dir.Path, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	put := protocol.DatasetPut{Name: "stolen", Manifest: m}
	if got := p.post(ctx, "eve", "/v1/datasets", put); got != protocol.StatusSendBlob {
		t.Errorf("a manifest without bytes: status %d", got)
	}
	shard := "/v1/blobs/" + m.Shards[0].Digest
	p.answers(ctx, p.users["eve"], 0, http.MethodGet, shard, http.StatusNotFound)
	if got := p.post(ctx, "eve", "/v1/datasets", put); got != protocol.StatusSendBlob {
		t.Errorf("after a second try: status %d", got)
	}
	d, err := eve.Datasets().ImportFree(ctx, protocol.DatasetPut{Name: "art"}, generate.Artificial(600, 1),
		importer.Options{})
	if err != nil || d.Name == "art" || d.Digest != p.set.Digest || d.Owner != "eve" {
		t.Fatalf("an import of the same bytes: %+v, %v", d, err)
	}
	for i := range p.peers {
		p.answers(ctx, p.users["eve"], i, http.MethodGet, shard, http.StatusOK)
	}
	// What a caller has sent, it may read at every coordinator. Another leader asks for it again.
	text := []byte("a list that nothing refers to yet")
	digest, err := sam.Blobs().Put(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.peers {
		p.answers(ctx, p.users["sam"], i, http.MethodGet, "/v1/blobs/"+digest, http.StatusOK)
		p.answers(ctx, p.users["eve"], i, http.MethodGet, "/v1/blobs/"+digest, http.StatusNotFound)
	}
	assigned := make([]uint16, 600)
	for i := range assigned {
		assigned[i] = uint16(i % 2)
	}
	list := dataset.EncodeFolds(assigned)
	own = testSpec(map[string]string{"steps": "1"})
	own.TestFraction, own.Folds, own.Assigned, own.Name = 0, 2, blobs.Sum(list), "moved"
	moved, tries := false, 0
	err = sam.Blobs().Sending(ctx, [][]byte{list}, func() error {
		tries++
		if !moved {
			moved = true
			if before := p.leader(ctx); !p.transfersTo(ctx, p.followers(before)[0]) {
				t.Error("the leader has not changed")
			}
		}
		_, err := sam.Jobs().Submit(ctx, own)
		return err
	})
	if tries != 2 || err != nil {
		t.Errorf("after a change of leader, the request was sent %d times: %v", tries, err)
	}
}

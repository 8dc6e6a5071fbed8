package served

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/job/local"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// trained returns the outcome of a small training, with its model file.
func trained(t testing.TB, algorithm string, seed uint64) *pipeline.Outcome {
	t.Helper()
	m, shards := datatest.Artificial(t, 60)
	j, err := spec.Resolve(protocol.Spec{Algorithm: algorithm, TestFraction: 0.2, Seed: &seed}, m)
	if err != nil {
		t.Fatal(err)
	}
	o, err := local.Run(t.Context(), j, &local.Data{Manifest: m, Shards: shards}, local.Options{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// save writes a file that is some minutes old.
func save(t testing.TB, path string, b []byte, minutes int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Duration(minutes) * time.Minute)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

// TestModels: model files are listed with the trainings that made them, also a damaged one. Others are not.
func TestModels(t *testing.T) {
	dir := t.TempDir()
	knn, bfgs := trained(t, "aa-knn", 1), trained(t, "sa-bfgs", 2)
	save(t, filepath.Join(dir, "first.model"), knn.Model, 9)
	save(t, filepath.Join(dir, "sub", "m.coppice"), bfgs.Model, 5)
	broken := append([]byte{}, knn.Model...)
	broken[len(broken)-1] ^= 1
	save(t, filepath.Join(dir, "broken.model"), broken, 1)
	save(t, filepath.Join(dir, "none.model"), []byte("text"), 1)
	save(t, filepath.Join(dir, ".hidden.model"), knn.Model, 1)
	l := planOf("e", 1, 1)
	write(t, filepath.Join(dir, "e.experiment"), l, 2, 0)
	save(t, filepath.Join(dir, "e.experiment", modelsDir, knn.ModelDigest+".model"), knn.Model, 7)
	save(t, filepath.Join(dir, "e.experiment", modelsDir, "x.model"), knn.Model, 7)
	_, s := open(t, dir)

	var list []protocol.ModelInfo
	get(t, s, "/v1/models", &list)
	run := "e/" + knn.ModelDigest[:digestPrefix]
	var got []string
	for _, m := range list {
		got = append(got, fmt.Sprint(m.Name, " ", m.Algorithm, " ", m.Bytes, " ", m.Suspect != ""))
	}
	want := fmt.Sprintf("first aa-knn %d false, %s aa-knn %d false, sub:m.coppice sa-bfgs %d false, broken  %d true",
		len(knn.Model), run, len(knn.Model), len(bfgs.Model), len(broken))
	if text := strings.Join(got, ", "); text != want || list[0].Digest != knn.ModelDigest {
		t.Errorf("%s\nwant %s", text, want)
	}
	if get(t, s, "/v1/models?algorithm=aa-knn&name=f*", &list); len(list) != 1 || list[0].Name != "first" {
		t.Errorf("%+v", list)
	}
	if get(t, s, "/v1/models?newest=1", &list); len(list) != 1 || list[0].Name != "broken" {
		t.Errorf("%+v", list)
	}
	for name, model := range map[string][]byte{"first": knn.Model, run: knn.Model, "e/" + knn.ModelDigest: knn.Model,
		"sub:m.coppice": bfgs.Model} {
		if status, body := get(t, s, "/v1/models/"+name, nil); status != 200 || body != string(model) {
			t.Errorf("%s: status %d, %d bytes", name, status, len(body))
		}
	}
	r, err := http.NewRequest(http.MethodGet, s.URL+"/v1/models/first", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Range", "bytes=0-6")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusPartialContent || answer.ContentLength != 7 {
		t.Errorf("status %d, %d bytes", answer.StatusCode, answer.ContentLength)
	}
	refuse(t, s, 404, "/v1/models/none", "no model")
	refuse(t, s, 404, "/v1/models/e/"+strings.Repeat("0", 12), "no model")

	var jobs protocol.JobList
	get(t, s, "/v1/jobs", &jobs)
	if len(jobs.Jobs) != 3 || jobs.Jobs[0].Name != "broken" || jobs.Jobs[0].State != protocol.Failed ||
		!strings.Contains(jobs.Jobs[0].Error, "broken.model: the model file cannot be read") || jobs.Jobs[2].Name != "first" ||
		jobs.Jobs[2].ID != 1 || jobs.Jobs[2].Outcome != nil {
		t.Errorf("%+v", jobs)
	}
	if get(t, s, "/v1/jobs?sort=kl&limit=2&state=done", &jobs); len(jobs.Jobs) != 2 || jobs.Total != 2 || jobs.Next != 0 ||
		jobs.Jobs[0].Measures["kl"] > jobs.Jobs[1].Measures["kl"] {
		t.Errorf("%+v", jobs)
	}
	if get(t, s, "/v1/jobs?limit=1", &jobs); jobs.Total != 3 || jobs.Next != jobs.Jobs[0].ID {
		t.Errorf("%+v", jobs)
	}
	if get(t, s, fmt.Sprint("/v1/jobs?limit=1&after=", jobs.Next), &jobs); jobs.Jobs[0].Name != "sub:m.coppice" {
		t.Errorf("%+v", jobs)
	}
	for _, key := range []string{"first", "1"} {
		var j protocol.JobInfo
		get(t, s, "/v1/jobs/"+key, &j)
		if j.Job.Algorithm != "aa-knn" || j.Measures["kl"] != knn.Measures[0].Mean || j.EvaluatedOn != heldOut ||
			!strings.Contains(string(j.Spec), `"k":`) || !strings.Contains(string(j.Outcome), knn.ModelDigest) {
			t.Errorf("%+v", j)
		}
	}
	refuse(t, s, 404, "/v1/jobs/17", "no training")
	refuse(t, s, 400, "/v1/jobs?sort=size", "size")
}

// TestNumbersAsNames: the number of a training leads to it, also if the file of another one has this number as name.
func TestNumbersAsNames(t *testing.T) {
	dir, model := t.TempDir(), trained(t, "aa-knn", 1).Model
	for i, name := range []string{"2", "a", "1", "007"} {
		save(t, filepath.Join(dir, name+".model"), model, 9-i)
	}
	_, s := open(t, dir)
	var list protocol.JobList
	get(t, s, "/v1/jobs", &list)
	for _, want := range list.Jobs {
		var j protocol.JobInfo
		get(t, s, fmt.Sprint("/v1/jobs/", want.ID), &j)
		if j.Name != want.Name || j.ID != want.ID {
			t.Errorf("training %d is %s, not %s", want.ID, j.Name, want.Name)
		}
	}
	var j protocol.JobInfo
	if get(t, s, "/v1/jobs/007", &j); j.Name != "007" || len(list.Jobs) != 4 {
		t.Errorf("%+v of %d", j, len(list.Jobs))
	}
}

// TestCurves: the curve of a training is in a file with the name of its model file.
func TestCurves(t *testing.T) {
	dir := t.TempDir()
	model := trained(t, "aa-knn", 1).Model
	for i, name := range []string{"a.model", "b.model", "c-fold1.model", "d.model", "e.model"} {
		save(t, filepath.Join(dir, name), model, 9-i)
	}
	head := "step,training_loss,validation_loss,seconds\n"
	save(t, filepath.Join(dir, "a.csv"), []byte(head+"1,0.5,,0.25\n2,0.25,0.75,\n"), 1)
	save(t, filepath.Join(dir, "b-curve.csv"), []byte(head+"1,x,,\n"), 1)
	save(t, filepath.Join(dir, "c.csv"), []byte("fold,"+head+"0,1,9,,\n1,1,8,,\n1,2,7,,\n"), 1)
	save(t, filepath.Join(dir, "d.csv"), []byte("x0,x1\n1,2\n"), 1)
	long := head
	for step := range 5000 {
		long += fmt.Sprintf("%d,0.5,,\n", step+1)
	}
	save(t, filepath.Join(dir, "e.csv"), []byte(long), 1)
	_, s := open(t, dir)
	points := func(job string) []curve.Point {
		var c protocol.JobCurve
		get(t, s, "/v1/jobs/"+job+"/curve", &c)
		return c.Points
	}
	a := points("a")
	if len(a) != 2 || a[0].Training != 0.5 || a[0].Millis != 250 || a[1].Validation != 0.75 ||
		a[1].Millis != curve.Unknown {
		t.Errorf("%+v", a)
	}
	if c := points("c-fold1"); len(c) != 2 || c[1].Training != 7 {
		t.Errorf("%+v", c)
	}
	if d := points("d"); len(d) != 0 {
		t.Errorf("%+v", d)
	}
	if e := points("e"); len(e) > maxPoints || len(e) < maxPoints/2 || e[0].Step != 1 ||
		e[1].Step-e[0].Step != e[2].Step-e[1].Step {
		t.Errorf("%d points, %+v", len(e), e[:3])
	}
	refuse(t, s, 500, "/v1/jobs/b/curve", "b-curve.csv", "line 2")
}

// FuzzCurve: any file is a curve of few points, or none, or an error.
func FuzzCurve(f *testing.F) {
	f.Add([]byte("step,training_loss,validation_loss,seconds\n1,0.5,,0.25\n"), 0)
	f.Add([]byte("fold,step,training_loss,validation_loss,seconds\n2,1,0.5,1,9e99\n"), 2)
	f.Add([]byte("fold\n"), 0)
	f.Fuzz(func(t *testing.T, b []byte, fold int) {
		allocs.AtMost(t, 64*len(b)+1<<20, "curve", func() {
			if points, err := decodeCurve(bytes.NewReader(b), fold); len(points) > maxPoints || err != nil && points != nil {
				t.Errorf("%d points, error %v", len(points), err)
			}
		})
	})
}

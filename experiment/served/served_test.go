package served

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/apitest"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// planOf returns the layout of an experiment with methods on two datasets.
func planOf(name string, methods, folds int) *experiment.Layout {
	r := rand.New(rand.NewPCG(uint64(methods), uint64(folds)))
	t := &result.Table{Name: name, Measures: []string{"kl"}, Datasets: []result.Dataset{
		{Name: "one", Rows: 100, Features: 3, Labels: 2, Folds: folds, Digest: strings.Repeat("1", 64)},
		{Name: "two", Rows: 200, Features: 3, Labels: 2, Folds: folds, Digest: strings.Repeat("2", 64)}}}
	l := &experiment.Layout{Table: t, Text: "name: " + name}
	for m := range methods {
		t.Methods = append(t.Methods, result.Method{Name: fmt.Sprint("method ", m), Algorithm: "aa-knn"})
		for d := range t.Datasets {
			for f := range folds {
				t.Runs = append(t.Runs, result.Run{Dataset: d, Method: m, Fold: f, State: result.Missing})
				key := ""
				for range 4 {
					key += fmt.Sprintf("%016x", r.Uint64())
				}
				l.Keys = append(l.Keys, key)
			}
		}
	}
	return l
}

// outcome is how a run ended: well, or with an error.
func outcome(why string) *pipeline.Outcome {
	o := &pipeline.Outcome{ModelDigest: strings.Repeat("ab", 32), Steps: 3, EvaluatedOn: heldOut, Error: why}
	for i := range o.Measures {
		o.Measures[i].Mean, o.MeanPredictor[i].Mean = 0.5, 0.25
	}
	o.Rows.Test = 10
	return o
}

// write makes an experiment in a folder whose first runs have ended, the first failed of them with an error.
func write(t testing.TB, dir string, l *experiment.Layout, ended, failed int) {
	t.Helper()
	f, err := experiment.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.PutLayout(l); err != nil {
		t.Fatal(err)
	}
	for i := range ended {
		put(t, f, l.Keys[i], i < failed)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func put(t testing.TB, f *experiment.Folder, key string, fails bool) {
	t.Helper()
	why := ""
	if fails {
		why = "the matrix is singular"
	}
	if err := f.Put(&experiment.Record{Key: key, Seconds: 2, Outcome: outcome(why)}); err != nil {
		t.Fatal(err)
	}
}

// open serves a folder. Responses are compared with the description of the API.
func open(t testing.TB, dir string) (*Folder, *httptest.Server) {
	t.Helper()
	f, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(apitest.Conforming(t, f))
	t.Cleanup(func() {
		s.Close()
		f.Close()
	})
	return f, s
}

// get asks for a path, and decodes the answer, which has no unknown keys. It returns the status and the body.
func get(t testing.TB, s *httptest.Server, path string, into any) (int, string) {
	t.Helper()
	r, err := http.Get(s.URL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		t.Fatal(err)
	}
	if into != nil {
		d := json.NewDecoder(bytes.NewReader(b.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil || r.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d: %v: %.300s", path, r.StatusCode, err, b.String())
		}
	}
	return r.StatusCode, b.String()
}

// refuse asks for a path, which must be refused with a Problem that says something.
func refuse(t testing.TB, s *httptest.Server, status int, path string, says ...string) {
	t.Helper()
	got, body := get(t, s, path, nil)
	var p protocol.Problem
	if err := json.Unmarshal([]byte(body), &p); err != nil || got != status || p.Kind == "" {
		t.Errorf("%s: status %d, %v, %.300s", path, got, err, body)
	}
	for _, text := range says {
		if !strings.Contains(p.Error, text) {
			t.Errorf("%s: %q does not say %q", path, p.Error, text)
		}
	}
}

// snapshot lists the files below a folder with their times and sizes.
func snapshot(t testing.TB, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			list = append(list, fmt.Sprint(path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestExperiments: experiments of all states are described, listed in parts and reported. Nothing is written.
func TestExperiments(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "done.experiment"), planOf("d", 2, 3), 12, 1)
	write(t, filepath.Join(dir, "sub", "half"), planOf("h", 2, 3), 5, 0)
	write(t, filepath.Join(dir, "begun.experiment"), planOf("b", 1, 2), 0, 0)
	damaged := filepath.Join(dir, "damaged.experiment")
	write(t, damaged, planOf("x", 1, 2), 1, 0)
	if err := os.WriteFile(filepath.Join(damaged, planFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	limited := planOf("l", 2, 2)
	limited.Table.Methods[1].Budget = "3 s"
	write(t, filepath.Join(dir, "limited.experiment"), limited, 4, 0)
	before := snapshot(t, dir)
	_, s := open(t, dir)

	var list protocol.ExperimentList
	get(t, s, "/v1/experiments?sort=name", &list)
	var got []string
	for _, x := range list.Experiments {
		got = append(got, fmt.Sprint(x.Name, " ", x.State, " ", x.Done, "/", x.Runs, " ", x.NotRun, " ", len(x.Errors)))
	}
	want := "begun paused 0/4 0 0, damaged failed 0/0 0 1, done done 12/12 0 0, limited done 4/8 4 0, sub:half paused 5/12 0 0"
	if text := strings.Join(got, ", "); text != want || list.Total != 5 {
		t.Errorf("%s\nwant %s", text, want)
	}
	get(t, s, "/v1/experiments?state=paused&limit=1&sort=name", &list)
	if len(list.Experiments) != 1 || list.Total != 2 || list.Next != "begun" {
		t.Errorf("%+v", list)
	}
	list = protocol.ExperimentList{}
	get(t, s, "/v1/experiments?state=paused&limit=1&sort=name&after=begun", &list)
	if len(list.Experiments) != 1 || list.Experiments[0].Name != "sub:half" || list.Next != "" {
		t.Errorf("%+v", list)
	}
	var x protocol.Experiment
	get(t, s, "/v1/experiments/sub:half", &x)
	if x.Name != "sub:half" || !strings.Contains(x.Waiting, "7 runs") ||
		time.Since(time.Unix(x.Submitted, 0)) > time.Hour {
		t.Errorf("%+v", x)
	}
	get(t, s, "/v1/experiments/damaged", &x)
	if len(x.Errors) != 1 || !strings.Contains(x.Errors[0], "plan.json") {
		t.Errorf("%+v", x)
	}

	var g protocol.ExperimentGrid
	get(t, s, "/v1/experiments/done/grid", &g)
	first := g.Methods[0].Runs[0]
	if g.Runs != (protocol.RunCounts{All: 12, Done: 11, Failed: 1}) || len(g.Methods) != 2 || len(g.Datasets) != 2 ||
		first.Failed != 1 || len(first.Failures) != 1 || first.Failures[0].Error != "the matrix is singular" {
		t.Errorf("%+v", g)
	}
	get(t, s, "/v1/experiments/limited/grid?from=1&limit=1", &g)
	if g.Runs.NotRun != 4 || len(g.Methods) != 1 || g.Methods[0].Name != "method 1" || g.Total != 2 {
		t.Errorf("%+v", g)
	}
	for _, format := range protocol.ReportFormats {
		if status, body := get(t, s, "/v1/experiments/done/report?format="+format, nil); status != 200 ||
			!strings.Contains(body, "method 1") {
			t.Errorf("%s: status %d: %.200s", format, status, body)
		}
	}
	refuse(t, s, 400, "/v1/experiments/done/report?format=doc", "format")
	refuse(t, s, 400, "/v1/experiments/done/report?format=md&level=0.0000000000001", "level")
	refuse(t, s, 500, "/v1/experiments/damaged/report", "plan.json")
	refuse(t, s, 500, "/v1/experiments/damaged/grid", "plan.json")
	refuse(t, s, 404, "/v1/experiments/none", "no experiment")
	refuse(t, s, 404, "/v1/experiments?after=none", "after")
	refuse(t, s, 400, "/v1/experiments?state=asleep", "asleep")
	refuse(t, s, 404, "/v1/workers", "/v1/workers")
	if after := snapshot(t, dir); strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("files have changed:\n%q\n%q", before, after)
	}
}

// TestEmptyFolder: lists of an empty folder are empty, and requests that change something are refused.
func TestEmptyFolder(t *testing.T) {
	_, s := open(t, t.TempDir())
	for path, want := range map[string]string{"/v1/models": "[]", "/v1/jobs": `{"jobs":[],"total":0}`,
		"/v1/experiments": `{"experiments":[],"total":0}`} {
		if _, body := get(t, s, path, nil); strings.TrimSpace(body) != want {
			t.Errorf("%s: %s", path, body)
		}
	}
	r, err := http.Post(s.URL+"/v1/jobs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("status %d", r.StatusCode)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that does not exist is open")
	}
}

// lines reads the lines of a stream.
type lines struct {
	t    *testing.T
	body *json.Decoder
}

func stream1(t *testing.T, s *httptest.Server, path string) *lines {
	t.Helper()
	ctx := testkit.Context(t)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return &lines{t, json.NewDecoder(answer.Body)}
}

// until returns the first line for which is returns true.
func (l *lines) until(is func(*protocol.ExperimentLine) bool) *protocol.ExperimentLine {
	l.t.Helper()
	for {
		x := new(protocol.ExperimentLine)
		if err := l.body.Decode(x); err != nil {
			l.t.Fatal(err)
		}
		if is(x) {
			return x
		}
	}
}

// TestRunningExperiment: a stream follows an experiment that another process writes, which keeps its lock. Each run is
// told once.
func TestRunningExperiment(t *testing.T) {
	dir := t.TempDir()
	l := planOf("r", 2, 2)
	f, err := experiment.OpenFolder(filepath.Join(dir, "r.experiment"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.PutLayout(l); err != nil {
		t.Fatal(err)
	}
	f.Begin(l.Keys[0])
	_, s := open(t, dir)
	in := stream1(t, s, "/v1/experiments/r/changes?runs=true")
	in.until(func(x *protocol.ExperimentLine) bool {
		return x.State == protocol.Running && x.Done == 0 && len(x.Phases) == 1 && strings.HasPrefix(x.Phases[0], "1 run ")
	})
	var g protocol.ExperimentGrid
	if get(t, s, "/v1/experiments/r/grid", &g); g.Runs.Running != 1 || g.Methods[0].Runs[0].Running != 1 {
		t.Errorf("%+v", g)
	}
	told := map[int]bool{}
	note := func(x *protocol.ExperimentLine) {
		for _, of := range x.RunsEnded {
			for _, run := range of.Runs {
				if told[run.Task] || run.Failed != (run.Task == 1) {
					t.Errorf("%+v", run)
				}
				told[run.Task] = true
			}
		}
	}
	for i, key := range l.Keys {
		put(t, f, key, i == 1)
		if i == 2 {
			in.until(func(x *protocol.ExperimentLine) bool { note(x); return x.Done == 3 })
		}
	}
	in.until(func(x *protocol.ExperimentLine) bool { note(x); return x.Done == 8 && x.State == protocol.Running })
	if _, err := experiment.OpenFolder(filepath.Join(dir, "r.experiment")); err == nil {
		t.Error("a reader of the folder has released its lock")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if x := in.until(func(x *protocol.ExperimentLine) bool { note(x); return x.Ended() }); x.State != protocol.Done {
		t.Errorf("%+v", x)
	}
	if in.body.More() || len(told) != 8 {
		t.Errorf("a line follows, or %d runs were told", len(told))
	}
}

// TestHostileNames: any name of a folder or a file is an element of a path, and leads nowhere else.
func TestHostileNames(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "secret.experiment"), planOf("s", 1, 1), 2, 0)
	names := []string{"<img src=x onerror=alert(1)>", "a b%2F..", "..x", "ö\n\x1b[31m", "bad\xff", "same",
		"same.experiment"}
	for _, name := range names {
		write(t, filepath.Join(dir, "in", name), planOf("n", 1, 1), 2, 0)
	}
	for link, to := range map[string]string{"link": outside, "in/link.experiment": filepath.Join(outside,
		"secret.experiment")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	half := filepath.Join(dir, "half.experiment")
	if err := os.MkdirAll(filepath.Join(half, modelsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{planFile: filepath.Join(outside, "secret.experiment", planFile),
		"models/" + strings.Repeat("ab", 32) + ".model": filepath.Join(outside, "secret.experiment", runsFile)} {
		if err := os.Symlink(to, filepath.Join(half, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{planFile, runsFile} {
		part := filepath.Join(dir, "part-"+link+".experiment")
		write(t, part, planOf("p", 1, 1), 1, 0)
		at := filepath.Join(part, link)
		if err := errors.Join(os.Remove(at), os.Symlink(filepath.Join(outside, "secret.experiment", link), at)); err != nil {
			t.Fatal(err)
		}
	}
	_, s := open(t, dir)
	var list protocol.ExperimentList
	get(t, s, "/v1/experiments", &list)
	seen := make(map[string]bool)
	for _, x := range list.Experiments {
		if link, is := strings.CutPrefix(x.Name, "part-"); is {
			if x.State != protocol.Failed || x.Runs != 0 || !strings.Contains(fmt.Sprint(x.Errors), link+": ") {
				t.Errorf("%+v", x)
			}
			refuse(t, s, 500, "/v1/experiments/"+x.Name+"/report", "regular file")
			refuse(t, s, 500, "/v1/experiments/"+x.Name+"/grid", "regular file")
			continue
		}
		seen[x.Name] = true
		var one protocol.Experiment
		if get(t, s, "/v1/experiments/"+url.PathEscape(x.Name), &one); one.Name != x.Name || one.State != protocol.Done {
			t.Errorf("%q: %+v", x.Name, one)
		}
	}
	// A name that begins with a dot is left out.
	if len(seen) != len(names)-1 || !seen["in:<img src=x onerror=alert(1)>"] || !seen["in:same"] || !seen["in:same~2"] {
		t.Errorf("%+v", seen)
	}
	for _, name := range []string{"..", ".", "../" + filepath.Base(outside) + "/secret", outside + "/secret.experiment",
		"link/secret", "link:secret", "in:link", "half", "in/..x"} {
		refuse(t, s, 404, "/v1/experiments/"+strings.ReplaceAll(url.PathEscape(name), ".", "%2E"), "")
	}
	for _, name := range []string{"half/" + strings.Repeat("ab", 32), "%2E%2E/%2E%2E/etc/passwd", "half/models/x"} {
		refuse(t, s, 404, "/v1/models/"+name, "")
	}
}

package submission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// cluster is what a cluster has, in memory.
type cluster struct {
	jobs     []protocol.JobInfo
	outcomes map[uint64]map[int][]byte // by job and run
	blobs    map[string][]byte
	unread   error // of each read, if set
}

func (c *cluster) ExperimentJobs(_ context.Context, name string) (list []protocol.JobInfo, err error) {
	for _, j := range c.jobs {
		if j.Experiment == name {
			list = append(list, j)
		}
	}
	return list, nil
}

func (c *cluster) Outcomes(_ context.Context, job uint64, _ bool, take func(protocol.CellOutcome) error) error {
	for _, run := range slices.Sorted(maps.Keys(c.outcomes[job])) {
		if err := take(protocol.CellOutcome{Task: run, Outcome: c.outcomes[job][run], Seconds: 2}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) RunStates(_ context.Context, job uint64, take func(protocol.CellState) error) error {
	for _, run := range slices.Sorted(maps.Keys(c.outcomes[job])) {
		var o pipeline.Outcome
		if err := json.Unmarshal(c.outcomes[job][run], &o); err != nil {
			return err
		}
		if err := take(protocol.CellState{Task: run, Failed: o.Error != "", Error: o.Error}); err != nil {
			return err
		}
	}
	return nil
}

func (c *cluster) ReadBlob(_ context.Context, digest string) ([]byte, error) {
	b, ok := c.blobs[digest]
	if c.unread != nil {
		return nil, c.unread
	}
	if !ok {
		return nil, errors.New("no blob " + digest)
	}
	return b, nil
}

// submit submits a spec, and runs what is new: the runs of each method that fails tells fail.
func (c *cluster) submit(t *testing.T, text string, o Options, fails string,
	state protocol.JobState, runs int) *Submission {
	t.Helper()
	s, err := experiment.Parse(t.Context(), "e.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	p, err := experiment.NewPlan(t.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	e, err := Read(t.Context(), c, s.Name)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := e.Add(t.Context(), s, []Plan{{p, "d"}}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range sub.Blobs {
		sum := sha256.Sum256(b)
		c.blobs[hex.EncodeToString(sum[:])] = b
	}
	for i := range c.jobs {
		c.jobs[i].Outline = sub.Outline
	}
	for _, r := range sub.Jobs {
		id := uint64(len(c.jobs) + 1)
		j := protocol.JobInfo{ID: id, Index: id, Name: r.Name, Experiment: s.Name, Outline: sub.Outline, State: state,
			Dataset: r.Dataset, Job: r.Job, Spec: r.Spec}
		c.jobs, c.outcomes[id] = append(c.jobs, j), make(map[int][]byte)
		of, err := experiment.DecodeJobSpec(r.Spec)
		if err != nil {
			t.Fatal(err)
		}
		for run, cell := range r.Job.Cells.All() {
			outcome := &pipeline.Outcome{}
			if of.Methods[cell.Row] == fails {
				outcome.Error = "it failed"
			}
			if run < runs {
				if c.outcomes[id][run], err = json.Marshal(outcome); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return sub
}

// TestOutlineUnread: if the outline of the last submission cannot be read now, nothing is decided. If it is lost, a
// submission brings another.
func TestOutlineUnread(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	text := "name: e\ndatasets: [b]\nfolds: 4\nmethods: [aa-knn]\n"
	c.submit(t, text, Options{}, "", protocol.Done, all)
	s, err := experiment.Parse(t.Context(), "e.yaml", []byte(strings.Replace(text, "aa-knn", "rf", 1)))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := datatest.Artificial(t, 60)
	p, err := experiment.NewPlan(t.Context(), s, &s.Datasets[0], &experiment.Data{Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	add := func(unread error) (*Submission, error) {
		c.unread = unread
		e, err := Read(t.Context(), c, s.Name)
		if err != nil {
			t.Fatal(err)
		}
		return e.Add(t.Context(), s, []Plan{{p, "d"}}, nil, Options{})
	}
	if sub, err := add(nil); err != nil || !sub.Plan.NeedsConsent() {
		t.Errorf("%+v, %v", sub, err)
	}
	if sub, err := add(context.DeadlineExceeded); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", sub, err)
	}
	if sub, err := add(blobs.ErrMissing); err != nil || sub.Plan.NeedsConsent() || len(sub.Jobs) != 1 {
		t.Errorf("%+v, %v", sub, err)
	}
}

const all = 1000 // more runs than any job has

// TestStates: States has the states, the errors and the runs that are left out as Table has them, whatever ended in
// which job.
func TestStates(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	spec := func(methods string) string { return "name: e\ndatasets: [b]\nfolds: 4\nmethods: [" + methods + "]\n" }
	for _, step := range []struct {
		methods, fails string
		runs           int
	}{
		{"aa-knn, rf", "rf", 5},
		{"aa-knn, rf", "aa-knn", all},
		{"rf, aa-knn, sa-bfgs", "rf", 3},
		{"sa-bfgs, rf", "", all},
	} {
		c.submit(t, spec(step.methods), Options{RetryFailed: true}, step.fails, protocol.Cancelled, step.runs)
		e, err := Read(t.Context(), c, "e")
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.Layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, leftOut, err := e.States(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		want, without, err := e.Table(t.Context(), l) // fills l
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(leftOut, without) {
			t.Errorf("%+v: left out are %v, want %v", step, leftOut, without)
		}
		for i := range want.Runs {
			g, w := &got.Runs[i], &want.Runs[i]
			if g.State != w.State || g.Error != w.Error || got.NameOf(g) != want.NameOf(w) {
				t.Errorf("%+v: run %d: %+v, want %+v", step, i, g, w)
			}
		}
	}
}

// BenchmarkAdd measures a submission of 20,000 runs, and the same submission again, which adds nothing.
func BenchmarkAdd(b *testing.B) {
	text := "name: e\nfolds: {k: 10, repeats: 50}\ndatasets: [{dataset: a}, {dataset: b}, {dataset: c}, {dataset: " +
		"d}]\nmethods:\n"
	for k := range 10 {
		text += fmt.Sprintf("  - {algorithm: aa-knn, name: knn%d, settings: {k: %d}}\n", k, k+1)
	}
	s, err := experiment.Parse(b.Context(), "e.yaml", []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	var plans []Plan
	for i := range s.Datasets {
		m, _ := datatest.Artificial(b, 300+i)
		p, err := experiment.NewPlan(b.Context(), s, &s.Datasets[i], &experiment.Data{Manifest: m})
		if err != nil {
			b.Fatal(err)
		}
		plans = append(plans, Plan{p, s.Datasets[i].On})
	}
	add := func(c *cluster, runs int) *Submission {
		e, err := Read(b.Context(), c, s.Name)
		if err != nil {
			b.Fatal(err)
		}
		sub, err := e.Add(b.Context(), s, plans, nil, Options{})
		if err != nil || sub.Plan.Runs != runs {
			b.Fatalf("%d runs, error %v", sub.Plan.Runs, err)
		}
		return sub
	}
	sub := add(&cluster{}, 20_000)
	c := &cluster{blobs: map[string][]byte{sub.Outline: sub.Blobs[0]}}
	for i, r := range sub.Jobs {
		c.jobs = append(c.jobs, protocol.JobInfo{ID: uint64(i + 1), Name: r.Name, Experiment: s.Name, Outline: sub.Outline,
			State: protocol.Running, Job: r.Job, Spec: r.Spec})
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			add(&cluster{}, 20_000)
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			add(c, 0)
		}
	})
}

// TestAdd: a submission has the runs that no job has or will have; failed runs are repeated if this is asked for; a job
// that was cancelled leaves the runs without an outcome; the outline of the last submission counts.
func TestAdd(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	spec := func(methods string) string { return "name: e\ndatasets: [b]\nfolds: 4\nmethods: [" + methods + "]\n" }
	for _, step := range []struct {
		what, methods string
		o             Options
		fails         string
		state         protocol.JobState
		runs          int // with an outcome
		want          int
		names         string
		note          string
	}{
		{what: "the first submission", methods: "aa-knn, rf", fails: "rf", state: protocol.Done, runs: all, want: 8,
			names: "e.b"},
		{what: "the same again", methods: "aa-knn, rf", want: 0},
		{what: "a method more", methods: "aa-knn, rf, sa-bfgs", state: protocol.Cancelled, runs: 1, want: 4, names: "e.b.2"},
		{what: "what was cancelled", methods: "aa-knn, rf, sa-bfgs", state: protocol.Running, runs: 2, want: 3,
			names: "e.b.3"},
		{what: "while the last job runs", methods: "aa-knn, rf, sa-bfgs", want: 0},
		{what: "failed runs", methods: "aa-knn, rf, sa-bfgs", o: Options{RetryFailed: true}, state: protocol.Done, runs: all,
			want: 4, names: "e.b.4"},
		{what: "no failed runs any more", methods: "aa-knn, rf, sa-bfgs", o: Options{RetryFailed: true}, want: 0},
		{what: "two equal methods", methods: "aa-knn, rf, sa-bfgs, {algorithm: aa-knn, settings: {k: 2}}, {algorithm: " +
			"aa-knn, name: same, preset: auto, settings: {k: 2}}",
			state: protocol.Done, runs: all, want: 4, names: "e.b.5", note: `Methods "aa-knn k=2" = "same"`},
		{what: "other settings under the same name", methods: "{algorithm: aa-knn, name: aa-knn, settings: {k: 3}}",
			state: protocol.Done, runs: all, want: 4, names: "e.b.6",
			note: "4 runs are repeated, because their data, settings, folds or seed have changed"},
	} {
		sub := c.submit(t, spec(step.methods), step.o, step.fails, step.state, step.runs)
		var names []string
		for _, j := range sub.Jobs {
			names = append(names, j.Name)
		}
		if sub.Plan.Runs != step.want || strings.Join(names, " ") != step.names || sub.Empty != (step.want == 0) ||
			!strings.Contains(strings.Join(sub.Plan.Notes, "\n"), step.note) {
			t.Fatalf("%s: %d runs in %q, empty %v, want %d in %q; notes %q", step.what, sub.Plan.Runs, names, sub.Empty,
				step.want, step.names, sub.Plan.Notes)
		}
		if step.what == "failed runs" && sub.Jobs[0].Job.Cells.Again != 4 {
			t.Errorf("%d runs are repeated", sub.Jobs[0].Job.Cells.Again)
		}
	}
	e, err := Read(t.Context(), c, "e")
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Layout(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table, leftOut, err := e.Table(t.Context(), l)
	if n := experiment.Count(table); err != nil || n.Done != 4 || len(table.Runs) != 4 || len(leftOut) != 15 {
		t.Errorf("%+v of %d runs, left out are %v, error %v", n, len(table.Runs), leftOut, err)
	}
	none, err := Read(t.Context(), c, "none")
	if err != nil || len(none.Jobs) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
	if _, err := none.Layout(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("the layout of an experiment that is not there: %v", err)
	}
}

// TestRetry: failed runs of the last submission are repeated, and runs that a cancelled job did not do, unless only
// failed ones are wanted. Runs that a job will have are not.
func TestRetry(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	spec := "name: e\ndatasets: [b]\nfolds: 4\nbudget: 1s\nmethods: [aa-knn, rf]\n"
	c.submit(t, spec, Options{}, "rf", protocol.Cancelled, 5)
	for _, step := range []struct {
		o    Options
		want int
	}{
		{Options{RetryFailed: true, OnlyFailed: true}, 2}, // of folds 0 and 1 of rf
		{Options{RetryFailed: true}, 5},
		{Options{}, 3},
	} {
		e, err := Read(t.Context(), c, "e")
		if err != nil {
			t.Fatal(err)
		}
		sub, err := e.Retry(t.Context(), step.o)
		if err != nil || sub.Plan.Runs != step.want || sub.Outline != c.jobs[0].Outline || sub.Jobs[0].Dataset != "d" ||
			len(sub.Jobs[0].Job.Cells.Budgets) > 0 {
			t.Errorf("%+v: %+v, error %v", step.o, sub, err)
		}
	}
	job := &c.jobs[0]
	kept := job.Spec
	job.Spec = bytes.Replace(kept, []byte(`"dataset":"b"`), []byte(`"dataset":"other"`), 1)
	e, err := Read(t.Context(), c, "e")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Retry(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "no job on dataset b") {
		t.Errorf("the jobs of a dataset were deleted: error %v", err)
	}
	job.Spec = kept
	c.submit(t, spec, Options{RetryFailed: true}, "", protocol.Running, 0)
	if e, err = Read(t.Context(), c, "e"); err != nil {
		t.Fatal(err)
	}
	if sub, err := e.Retry(t.Context(), Options{RetryFailed: true}); err != nil || !sub.Empty || sub.Plan.Runs != 0 {
		t.Errorf("while they are repeated: %+v, error %v", sub, err)
	}
}

// TestAddRecorded: runs without the data that a spec records are noted, and repeated if this is asked for.
func TestAddRecorded(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	plain := "name: e\ndatasets: [b]\nfolds: 4\nmethods: [rf]\n"
	c.submit(t, plain, Options{}, "", protocol.Done, all)
	sub := c.submit(t, plain+"record: curve\n", Options{}, "", protocol.Done, all)
	if sub.Plan.Runs != 0 || !slices.Contains(sub.Plan.Notes,
		"4 runs ended without the data that are recorded now; --record-again repeats them") {
		t.Errorf("%d runs, notes %q", sub.Plan.Runs, sub.Plan.Notes)
	}
	sub = c.submit(t, plain+"record: curve\n", Options{RecordAgain: true}, "", protocol.Done, all)
	if sub.Plan.Runs != 4 || sub.Jobs[0].Job.Cells.Again != 4 || !sub.Jobs[0].Job.Cells.Curves {
		t.Errorf("%d runs, %+v", sub.Plan.Runs, sub.Jobs)
	}
	if sub = c.submit(t, plain+"record: curve\n", Options{RecordAgain: true}, "", protocol.Done, all); sub.Plan.Runs != 0 {
		t.Errorf("%d runs are repeated once more", sub.Plan.Runs)
	}
	// a later job without curves
	c.submit(t, strings.Replace(plain, "[rf]", "[rf, aa-knn]", 1), Options{}, "", protocol.Done, all)
	if sub = c.submit(t, plain+"record: curve\n", Options{RecordAgain: true}, "", protocol.Done, all); sub.Plan.Runs != 0 {
		t.Errorf("%d runs are repeated after another submission", sub.Plan.Runs)
	}
}

// TestAddAfterBudget: runs that a done job left out, because a budget was used up, are new.
func TestAddAfterBudget(t *testing.T) {
	c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
	spec := "name: e\ndatasets: [b]\nfolds: 4\nmethods: [rf]\nbudget: 1m\n"
	c.submit(t, spec, Options{}, "", protocol.Done, 3)
	c.jobs[0].CellsNotRun = 1
	sub := c.submit(t, spec, Options{}, "", protocol.Done, all)
	budgets := sub.Jobs[0].Job.Cells.Budgets
	if sub.Plan.Runs != 1 || len(budgets) != 1 || budgets[0].Spent != 6 || sub.Jobs[0].Job.Cells.Rows[0].Ended != 3 {
		t.Errorf("%d runs, budgets %+v", sub.Plan.Runs, budgets)
	}
}

// FuzzOutcome: any outcome of a run is an error, or a result in the table.
func FuzzOutcome(f *testing.F) {
	f.Add(0, []byte(`{"error":"why"}`))
	f.Add(9, []byte(`{}`))
	f.Add(1, []byte(`{"rows":{"test":3},"model_digest":"x"}`))
	f.Fuzz(func(t *testing.T, run int, outcome []byte) {
		c := &cluster{outcomes: make(map[uint64]map[int][]byte), blobs: make(map[string][]byte)}
		c.submit(t, "name: e\ndatasets: [b]\nfolds: 2\nmethods: [rf]\n", Options{}, "", protocol.Running, 0)
		c.outcomes[1][run] = outcome
		e, err := Read(t.Context(), c, "e")
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.Layout(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		allocs.AtMost(t, 128*len(outcome)+256<<10, "an outcome", func() {
			table, _, err := e.Table(t.Context(), l)
			if err != nil {
				return
			}
			if n := experiment.Count(table); run < 0 || run > 1 || n.Done+n.Failed != 1 ||
				table.Runs[run].State == result.Missing {
				t.Fatalf("run %d: %+v", run, n)
			}
		})
	})
}

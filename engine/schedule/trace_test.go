package schedule

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/digests"
)

var update = flag.Bool("update", false, "write the actions of the traces")

// TestTraces runs the traces of testdata. A line is an event, and the indented lines below it are the actions that must
// follow; -update writes them. Invariants are checked after every event.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.trace")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".trace"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := runTrace(t, string(want))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}

// tracer runs a trace.
type tracer struct {
	t       *testing.T
	workers *Workers
	now     time.Time
	round   uint64
	at      uint64 // job
	jobs    map[uint64]*Job
	budgets Budgets
	actions []Action
	args    map[string]string
	words   []string
}

// heartbeat is the heartbeat interval of traces.
const heartbeat = 100 * time.Millisecond

func testLimits() Limits {
	return Limits{
		Heartbeat: heartbeat, Dead: 5 * heartbeat, Slow: 2 * heartbeat, Lost: 5 * heartbeat, Remind: 20 * heartbeat,
		Hold:    50 * heartbeat,
		Avoided: 100 * heartbeat, GiveUp: 10 * time.Minute, Short: 200 * time.Millisecond, Ahead: 1,
	}
}

func runTrace(t *testing.T, text string) string {
	r := &tracer{t: t, now: time.Unix(1000, 0), jobs: make(map[uint64]*Job), at: 1, workers: NewWorkers(testLimits(), nil)}
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, " "): // an action
			continue
		case line == "", strings.HasPrefix(line, "#"):
			fmt.Fprintln(&b, line)
			continue
		}
		r.actions = r.actions[:0]
		r.event(line)
		fmt.Fprintln(&b, line)
		for _, a := range r.actions {
			fmt.Fprintln(&b, "  "+show(a))
		}
		if err := checkAll(r.workers, slices.Collect(maps.Values(r.jobs))...); err != nil {
			t.Fatalf("after %q: %v", line, err)
		}
	}
	return b.String()
}

// event performs one line: a word, its arguments, and options "name=value" or "name". "JOB:" before it names the job.
func (r *tracer) event(line string) {
	line, reason, _ := strings.Cut(line, " because ")
	r.words, r.args = nil, map[string]string{"because": reason}
	for word := range strings.FieldsSeq(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			r.args[name] = value
		} else if id, ok := strings.CutSuffix(word, ":"); ok && len(r.words) == 0 {
			r.at = uint64(r.number(id))
		} else {
			r.words = append(r.words, word)
		}
	}
	switch what := r.words[0]; what {
	case "worker":
		shards := r.list("shards")
		report := Report{Name: r.words[1], Slots: r.number(r.args["slots"]), Full: true, Refusal: reason}
		for _, s := range shards {
			report.Shards = append(report.Shards, shard(s).Digest)
		}
		if ms := r.args["late"]; ms != "" {
			report.Late = r.duration(ms)
		}
		r.workers.Hear(report, r.now)
		r.wake()
	case "leaves":
		r.workers.Hear(Report{Name: r.words[1], Leaving: true}, r.now)
		r.wake()
	case "unreachable":
		r.workers.Unreachable(r.words[1])
		r.wake()
	case "trust":
		r.workers.SetQuarantined(map[string]string{"nobody": ""})
		r.workers.SetQuarantined(nil)
		r.wake()
	case "after": // everybody is heard meanwhile
		r.now = r.now.Add(r.duration(r.words[1]))
		r.workers.HeardAll(r.now)
	case "silence":
		r.now = r.now.Add(r.duration(r.words[1]))
		r.workers.Expire(r.now)
		r.wake()
	case "job":
		o := Options{Verifies: r.has("verifies")}
		var shards []dataset.ShardRef
		for s := range r.number(r.args["shards"]) {
			shards = append(shards, shard(s))
		}
		if r.args["budget"] != "" {
			o.Budget = r.budgets.Open(ShareOptions{
				Limits: map[string]float64{"b": r.duration(r.args["budget"]).Seconds()}, Rows: []Row{{}, {Budget: "b"},
					{Budget: "b"}},
			})
			r.budgets.Spend(nil)
		}
		r.jobs[r.at] = r.workers.NewJob(r.at, shards, o)
	case "round":
		r.begin()
	case "end":
		r.actions = r.jobs[r.at].End(r.actions, r.now)
	case "close":
		r.actions = r.jobs[r.at].Close(r.actions, r.now)
		delete(r.jobs, r.at)
	default:
		r.actions = r.jobs[r.at].Step(r.actions, r.now, r.parse(what, reason))
	}
}

// wake sends all jobs a Woken event, by number.
func (r *tracer) wake() {
	for id := uint64(0); id < 100; id++ {
		if j := r.jobs[id]; j != nil {
			r.actions = j.Step(r.actions, r.now, &Woken{})
		}
	}
}

func (r *tracer) begin() {
	r.round = uint64(r.number(r.words[1]))
	rd := &round.Round{Op: 1, Tasks: r.number(r.args["tasks"]), How: &round.Reduce{Steps: [2]uint64{5, 6}}}
	for _, v := range r.list("values") {
		rd.Vars = append(rd.Vars, round.Var{ID: uint16(v / 100), Version: uint64(v % 100)})
	}
	if n := r.number(r.args["chunks"]); n > 0 {
		rd.Vars = append(rd.Vars, round.Var{ID: 9, Version: r.round})
		for c := range n {
			rd.Vars[len(rd.Vars)-1].Chunks = append(rd.Vars[len(rd.Vars)-1].Chunks, chunk(c))
		}
	}
	var known []Known
	if r.words[2] == "gather" {
		how := &round.Gather{Apart: r.has("apart")}
		rd.How = how
		for _, g := range r.list("groups") {
			how.Groups = append(how.Groups, int32(g))
		}
		for _, t := range r.list("known") {
			known = append(known, Known{Task: uint32(t), Digest: digest(strconv.Itoa(t)), Took: time.Second})
		}
		for _, t := range r.list("notrun") {
			known = append(known, Known{Task: uint32(t)})
		}
	}
	r.actions = r.jobs[r.at].Begin(r.actions, r.now, r.round, rd, known, r.list("audit"))
}

// parse makes an event of a line.
func (r *tracer) parse(what, reason string) Event {
	n := r.round
	if text := r.args["round"]; text != "" {
		n = uint64(r.number(text))
	}
	word := func(i int) string {
		if i < len(r.words) {
			return r.words[i]
		}
		r.t.Fatalf("the event %q lacks an argument", r.words)
		return ""
	}
	task := func(i int) int { return r.number(word(i)) }
	took, late, lost := r.duration(r.args["took"]), r.has("late"), r.has("lost")
	result := Result{Digest: digest(r.args["digest"]), Took: took}
	switch what {
	case "woken":
		return &Woken{}
	case "tick":
		return &Tick{}
	case "partial":
		return &PartialArrived{
			Round: n, Worker: word(1), Level: task(2), Task: task(3), Digest: result.Digest, Took: took,
			Malformed: r.has("malformed"),
		}
	case "announced":
		return &ResultAnnounced{Round: n, Worker: word(1), Task: task(2), Result: result}
	case "stored":
		return &ResultStored{Round: n, Task: task(1), Result: result}
	case "recorded":
		return &ResultRecorded{Round: n, Task: task(1), Result: result, Late: late}
	case "late":
		return &RecordingLate{}
	case "givenup":
		return &RecordingGivenUp{}
	case "lost":
		return &ResultLost{Round: n, Task: task(1), Err: errors.New(reason), Late: late}
	case "skipped":
		e := &SkipsRecorded{Round: n}
		for _, w := range r.words[1:] {
			e.Tasks = append(e.Tasks, uint32(r.number(w)))
		}
		return e
	case "failed":
		return &TaskFailed{
			Round: n, Worker: word(1), Task: task(2), Reason: reason,
			Permanent: r.has("permanent"), Unable: r.has("unable"), NotFinite: r.has("notfinite"), BlobLost: lost,
		}
	case "lacks":
		e := &WorkerLacks{Round: n, Worker: word(1), Setup: r.has("setup")}
		for _, v := range r.list("values") {
			e.Values = append(e.Values, Value{uint16(v / 100), uint64(v % 100)})
		}
		return e
	case "verified":
		e := &LeaderComputed{Round: n, Task: task(1), Result: result, BlobLost: lost}
		if r.has("notfinite") {
			e.Result.NotFinite = reason
		} else if reason != "" {
			e.Err = errors.New(reason)
		}
		return e
	case "checkpoint":
		return &CheckpointArrived{Round: n, Worker: word(1), Task: task(2)}
	case "progress":
		return &ProgressArrived{Round: n, Worker: word(1), Task: task(2)}
	}
	r.t.Fatalf("there is no event %q", what)
	return nil
}

func (r *tracer) has(word string) bool { return slices.Contains(r.words, word) }

func (r *tracer) number(text string) int {
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *tracer) duration(text string) time.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

func (r *tracer) list(name string) (list []int) {
	for text := range strings.SplitSeq(r.args[name], ",") {
		if text != "" {
			list = append(list, r.number(text))
		}
	}
	return list
}

// shard returns a shard of the traces' dataset.
func shard(i int) dataset.ShardRef { return dataset.ShardRef{Digest: fmt.Sprintf("%064d", i)} }

// chunk is a chunk of a value.
type chunk int

func (c chunk) Digest() string         { return digest(strconv.Itoa(int(c))).String() }
func (c chunk) Bytes() ([]byte, error) { return nil, nil }

// digest returns a digest that begins with a text.
func digest(text string) (d digests.Digest) {
	copy(d[:], text)
	return d
}

// show writes an action as a line of a trace.
func show(a Action) string {
	text := func(d digests.Digest) string { return strings.TrimRight(string(d[:]), "\x00") }
	flag := func(set bool, name string) string {
		if set {
			return " " + name
		}
		return ""
	}
	list := func(tasks []uint32) string { return strings.Trim(fmt.Sprint(tasks), "[]") }
	switch a := a.(type) {
	case *SendSetup:
		return "setup " + a.Worker
	case *SendValue:
		return fmt.Sprintf("value %s %d", a.Worker, a.Var)
	case *SendChunks:
		return fmt.Sprintf("chunks %s %d %d to %d%s", a.Worker, a.Var, a.From, a.From+a.N-1, flag(a.Known, "known"))
	case *SendRun:
		return fmt.Sprintf("run %s %s", a.Worker, list(a.Tasks))
	case *SendStop:
		return fmt.Sprintf("stop %s %d", a.Worker, a.Task)
	case *SendForget:
		return "forget " + a.Worker
	case *SendHold:
		held := "hold " + a.Worker
		for _, s := range a.Shards {
			held += " " + strings.TrimLeft(s.Digest[:63], "0") + s.Digest[63:]
		}
		return held
	case *UsePartial:
		return "use the partial"
	case *KeepPartial:
		return fmt.Sprintf("keep %d of %s", a.Task, a.Worker)
	case *UseKept:
		return fmt.Sprintf("use %d of %s", a.Task, a.Worker)
	case *UseCheckpoint:
		return fmt.Sprintf("use the checkpoint of %d", a.Task)
	case *UseProgress:
		return fmt.Sprintf("use the progress of %d", a.Task)
	case *Drop:
		return "drop: " + []string{"stale", "malformed", "duplicate"}[a.Reason]
	case *Store:
		return fmt.Sprintf("store %d of %s: %s", a.Task, a.Worker, text(a.Result.Digest))
	case *Record:
		return fmt.Sprintf("record %d%s: %s", a.Task, flag(a.Async, "async"), text(a.Result.Digest))
	case *RecordSkips:
		return fmt.Sprintf("record that %s is not run, after %v", list(a.Tasks), a.Took)
	case *Compute:
		return fmt.Sprintf("compute %d", a.Task)
	case *Quarantine:
		return fmt.Sprintf("quarantine %s, jobs %v: %s", a.Worker, a.Jobs, a.Reason)
	case *Restart:
		return "restart"
	case *WakeOthers:
		return "wake others"
	case *WakeJob:
		return fmt.Sprintf("wake %d", a.Job)
	case *Ended:
		return fmt.Sprintf("ended %d", a.Task)
	case *EndedBefore:
		return "ended before " + list(a.Tasks)
	case *NotRun:
		return "not run " + list(a.Tasks)
	case *Retried:
		return fmt.Sprintf("retried %d after %s, in %v: %v", a.Task, a.Worker, a.Pause, a.Err)
	case *RetriedLost:
		return fmt.Sprintf("retried %d: the result is lost: %v", a.Task, a.Err)
	case *RetriedNotFinite:
		return fmt.Sprintf("retried %d after %s: not finite: %s", a.Task, a.Worker, a.Reason)
	case *WorkerTrouble:
		return fmt.Sprintf("trouble with %s: %s%s, tasks %d", a.Worker, []string{"", "too slow", "lacks the job"}[a.Trouble],
			a.Reason, a.Tasks)
	case *Computed:
		return fmt.Sprintf("computed by %s: %d in %v", a.Worker, a.N, a.Took)
	case *Count:
		return fmt.Sprintf("count %s: %d", []string{"retried", "wasted", "compared", "different"}[a.Metric], a.N)
	case *Finish:
		return "finish"
	case *Fail:
		return "fail: " + a.Err.Error()
	}
	return fmt.Sprintf("an action %T without a name", a)
}

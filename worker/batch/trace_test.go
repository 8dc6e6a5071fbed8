package batch

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

var update = flag.Bool("update", false, "write the actions of the traces")

// TestTraces runs the traces in testdata. A line is an event, and the indented lines below it are the actions that must
// follow. With -update the test writes the actions. The words of an event are NAME or NAME=VALUE. Left out are epoch=5,
// job=1 and round=0.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no traces", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := (&trace{t: t}).run(string(b))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if got != string(b) {
				t.Errorf("got:\n%s\nwant:\n%s", got, b)
			}
		})
	}
}

// trace runs one trace.
type trace struct {
	t       *testing.T
	machine *Machine
	jobs    []*Job            // that were opened
	batches map[*Batch]string // names of the live ones
	begun   int               // batches
}

func (x *trace) run(text string) string {
	x.machine, x.batches = New(Config{Worker: "w", Slots: 2}), make(map[*Batch]string)
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		w := words{x.t, strings.Fields(line)}
		if w.list[0] == "memory" {
			x.machine.config.Memory = int64(w.number("bytes", 0))
			continue
		}
		for _, a := range x.machine.Step(nil, x.event(w)) {
			fmt.Fprintf(&out, "  %s\n", x.action(a))
		}
		if err := check(x.machine, x.jobs); err != nil {
			x.t.Errorf("%s: %v", line, err)
		}
	}
	return out.String()
}

// words are the words of an event.
type words struct {
	t    *testing.T
	list []string
}

func (w words) text(name, without string) string {
	for _, word := range w.list[1:] {
		if word == name {
			return name
		}
		if value, ok := strings.CutPrefix(word, name+"="); ok {
			return value
		}
	}
	return without
}

func (w words) number(name string, without int) int {
	text := w.text(name, strconv.Itoa(without))
	n, err := strconv.Atoi(text)
	if err != nil {
		w.t.Fatalf("%v: %v", w.list, err)
	}
	return n
}

// numbers reads a list such as 0,2,5-9.
func (w words) numbers(name string) (list []uint32) {
	for part := range strings.SplitSeq(w.text(name, ""), ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			to, _ = strconv.Atoi(last)
		}
		for n := from; n <= to; n++ {
			list = append(list, uint32(n))
		}
	}
	return list
}

// ref reads a version, such as 3/7.
func ref(text string) protocol.Ref {
	var r protocol.Ref
	fmt.Sscanf(text, "%d/%d", &r.ID, &r.Version)
	return r
}

func (w words) failure() error {
	text := w.text("error", "")
	switch text {
	case "":
		return nil
	case "permanent":
		return Permanent(errors.New(text))
	}
	return Passing(errors.New(text))
}

// event reads an event. Results of this side name a batch, such as b1, or a job and a task.
func (x *trace) event(w words) Event {
	epoch, id, number := uint64(w.number("epoch", 5)), uint64(w.number("job", 1)), uint64(w.number("round", 0))
	version, bytes, index, err := ref(w.text("ref", "")), w.number("bytes", 0), w.number("index", 0), w.failure()
	took := time.Duration(w.number("ms", 1)) * time.Millisecond
	executor := Reduce
	if w.text("gather", "") != "" {
		executor = Gather
	}
	job := x.machine.jobs[id]
	if w.text("old", "") != "" { // a job that is forgotten
		job = x.jobs[w.number("old", 0)]
	}
	var batch *Batch
	for b, name := range x.batches {
		if w.text(name, "") != "" {
			batch = b
		}
	}
	switch w.list[0] {
	case "heard":
		return &Heard{epoch}
	case "setup":
		m := &dataset.Manifest{}
		for range w.number("shards", 1) {
			m.Shards = append(m.Shards, dataset.ShardRef{Bytes: 100})
		}
		return &Setup{&protocol.Setup{Epoch: epoch, Start: uint64(w.number("start", 0)), ID: id, Manifest: m},
			w.text("spec", "a")}
	case "value":
		e := &Value{Epoch: epoch, Job: id, Ref: version, Bytes: bytes}
		if w.text("lent", "") != "" {
			e.Local = "lent"
		}
		return e
	case "chunk":
		return &Chunk{
			Epoch: epoch, Job: id, Ref: version, Index: index, Of: w.number("of", 0), Bytes: bytes,
			Sent: w.text("sent", "") != "", Found: w.text("found", "") != "",
		}
	case "run":
		return &Run{x.message(w, protocol.Stamp{Epoch: epoch, Job: id, Round: number}, executor), w.text("reply", "r")}
	case "forget":
		return &Forget{&protocol.Forget{Epoch: epoch, Job: id, Round: number, Tasks: w.numbers("units")}}
	case "opened":
		e := &Opened{Job: job, Demand: int64(w.number("demand", 0)), Err: err}
		if e.Demand > 0 {
			e.DemandFor = "matrices"
		}
		return e
	case "fetched":
		return &Fetched{job, index, err}
	case "free":
		return &Free{executor}
	case "ended":
		at := slices.IndexFunc(batch.tasks, func(t Assignment) bool { return t.Index == index })
		return &Ended{&batch.tasks[at], took, err}
	case "answered":
		return &Answered{batch}
	case "stored":
		return &Stored{Job: job, Task: job.Task(number, uint32(w.number("unit", 0))), Digest: w.text("digest", ""),
			Bytes: bytes, Took: took, Err: err}
	case "lost":
		return &ChunkLost{job.values.find(version), index}
	case "damaged":
		return &Damaged{job}
	case "reset":
		return &Reset{epoch}
	}
	x.t.Fatalf("there is no event %q", w.list[0])
	return nil
}

// message reads a Run message.
func (x *trace) message(w words, stamp protocol.Stamp, executor Executor) *protocol.Run {
	run := &protocol.Run{Stamp: stamp, Of: uint32(w.number("of", 4)), Tasks: w.numbers("units"),
		SubJob: w.text("child", "") != ""}
	run.Shape.F64 = w.number("f64", 0)
	run.Gather = executor == Gather
	if w.text("whole", "") != "" {
		run.Scope = round.Whole
	}
	if text := w.text("refs", ""); text != "" {
		for part := range strings.SplitSeq(text, ",") {
			run.Refs = append(run.Refs, ref(part))
		}
	}
	return run
}

var executorNames = []string{"reduce", "gather"}

// action writes an action.
func (x *trace) action(a Action) string {
	switch a := a.(type) {
	case Open:
		x.jobs = append(x.jobs, a.Job)
		return fmt.Sprintf("open job=%d", a.Job.ID)
	case Fetch:
		return fmt.Sprintf("fetch job=%d index=%d", a.Job.ID, a.Index)
	case Cancel:
		return fmt.Sprintf("cancel job=%d", a.Job.ID)
	case Close:
		return fmt.Sprintf("close job=%d", a.Job.ID)
	case RefuseJob:
		return "refuse job"
	case RefuseMessage:
		return fmt.Sprintf("refuse %v", a.Err)
	case Keep:
		return fmt.Sprintf("keep %d/%d", a.Version.ID, a.Version.Number)
	case KeepChunk:
		return fmt.Sprintf("keep %d/%d index=%d", a.Version.ID, a.Version.Number, a.Index)
	case Release:
		return fmt.Sprintf("release %d/%d", a.Version.ID, a.Version.Number)
	case Begin:
		if slices.Contains(a.Batch.Values, nil) { // the batch has retired
			x.t.Fatal("a batch begins without its values")
		}
		x.begun++
		x.batches[a.Batch] = fmt.Sprintf("b%d", x.begun)
		return "begin " + x.batches[a.Batch]
	case Wake:
		return fmt.Sprintf("wake %s n=%d", executorNames[a.Batch.Executor], a.Batch.Tasks())
	case Compute:
		return fmt.Sprintf("compute %s index=%d", x.batches[a.Batch], a.Index)
	case Answer:
		return "answer " + x.batches[a.Batch]
	case Retire:
		name := x.batches[a.Batch]
		delete(x.batches, a.Batch)
		return strings.TrimSpace("retire " + name)
	case Stop:
		return fmt.Sprintf("stop round=%d unit=%d", a.Task.Stamp.Round, a.Task.Number)
	case DropResult:
		return "drop digest=" + a.Digest
	case Need:
		if a.Refs == nil {
			return "need setup " + address(a.Request)
		}
		var refs []string
		for _, r := range a.Refs {
			refs = append(refs, fmt.Sprintf("%d/%d", r.ID, r.Version))
		}
		return fmt.Sprintf("need refs=%s %s", strings.Join(refs, ","), address(a.Request))
	case Fail:
		f := FailureOf(a.Err)
		kind := map[bool]string{true: "permanent", false: "passing"}[f.Permanent]
		if f.Unable {
			kind = "unable"
		}
		return fmt.Sprintf("fail %s unit=%d %s: %s", kind, a.Task, address(a.Request),
			strings.ReplaceAll(f.Error(), "\n", "; "))
	case Announce:
		return fmt.Sprintf("announce unit=%d digest=%s %s", a.Task.Number, a.Digest, address(a.Request))
	case Notice:
		return [...]string{Report: "report", NoJobs: "no jobs", CountStale: "count stale", CountLate: "count late"}[a]
	}
	x.t.Fatalf("there is no word for the action %T", a)
	return ""
}

func address(r Request) string {
	return fmt.Sprintf("job=%d round=%d epoch=%d reply=%s", r.Stamp.Job, r.Stamp.Round, r.Stamp.Epoch, r.Reply)
}

// TestLimits: the machine keeps a bounded number of jobs, and of bytes of earlier rounds.
func TestLimits(t *testing.T) {
	m := New(Config{Slots: 1})
	setup := func(id uint64) []Action {
		s := &protocol.Setup{Epoch: 1, ID: id, Manifest: &dataset.Manifest{Shards: make([]dataset.ShardRef, 1)}}
		return m.Step(nil, &Setup{s, "a"})
	}
	for id := range uint64(MaxBusyJobs) {
		setup(id) // none is idle, because none is opened
	}
	if a := setup(MaxBusyJobs); len(m.jobs) != MaxBusyJobs || a[len(a)-1] != Action(RefuseJob{MaxBusyJobs}) {
		t.Errorf("%d jobs are kept", len(m.jobs))
	}
	m.Step(nil, &Opened{Job: m.jobs[7]})
	m.Step(nil, &Opened{Job: m.jobs[3]})
	if setup(MaxBusyJobs); m.jobs[3] != nil || m.jobs[7] == nil || m.jobs[MaxBusyJobs] == nil {
		t.Error("the job that was idle for longest was not forgotten")
	}
	pastResults(t)
}

func pastResults(t *testing.T) {
	m := New(Config{Slots: 1})
	jobs := []*Job{{ID: 0, machine: m}, {ID: 1, machine: m}}
	var dropped []string
	pass := func(j *Job, digest string, bytes int) {
		task := &Task{done: true, result: result{digest, bytes}}
		j.tasks = map[uint32]*Task{0: task}
		m.out = nil
		j.supersede(protocol.Stamp{Round: j.round.Round + 1})
		for _, a := range m.out {
			if a, ok := a.(DropResult); ok {
				dropped = append(dropped, a.Digest)
			}
		}
	}
	pass(jobs[0], "a", MaxPast/2)
	pass(jobs[0], "b", MaxPast/4)
	pass(jobs[1], "c", MaxPast/2) // there is no room, and this job has nothing to give up
	pass(jobs[0], "d", MaxPast/2)
	if !slices.Equal(dropped, []string{"c", "a"}) || m.past != MaxPast/4+MaxPast/2 {
		t.Errorf("dropped are %v, kept %d bytes", dropped, m.past)
	}
}

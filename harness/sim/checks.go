package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/childjob"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/digests"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// checker compares what happens with the promises and with the reference. DESIGN.md lists
// the checks by name.
type checker struct {
	*verdict
	given *material
	disks []*disk // of the coordinators

	mu       sync.Mutex // guards the fields below
	index    uint64     // of the latest state that any coordinator has
	last     map[uint64]*state.Job
	refs     map[uint64]*reference // by job
	deleting map[uint64]bool       // jobs that a client asked to delete
	deleted  map[uint64]bool       // jobs that were deleted
	acks     []ack
	ended    map[round.Cell]uint64 // the job in which a run of the experiment ended
	records  map[taskOf]uint64     // the entry that recorded a task of a job of runs, or that it is not run
	notRun   map[taskOf]bool       // tasks that are not run, since their budget is used up
	heard    map[*host]uint64      // the highest epoch that was sent to a life of a worker
	orders   map[order]bool        // true if the worker knew a later epoch each time that it was given the order
}

// ack is a promise to a client: what the entry at index did to a job.
type ack struct {
	index           uint64
	token           string
	job             uint64
	cancel, deleted bool
}

// taskOf names a task of a job of runs.
type taskOf struct {
	job  uint64
	task uint32
}

// order names what a worker was asked for.
type order struct {
	worker            string
	epoch, job, round uint64
}

func newChecker(v *verdict, given *material) *checker {
	return &checker{
		verdict: v, given: given, last: make(map[uint64]*state.Job), refs: make(map[uint64]*reference),
		deleting: make(map[uint64]bool),
		deleted:  make(map[uint64]bool), ended: make(map[round.Cell]uint64), records: make(map[taskOf]uint64),
		notRun: make(map[taskOf]bool), heard: make(map[*host]uint64), orders: make(map[order]bool),
	}
}

// lastJob returns the latest state of a job.
func (c *checker) lastJob(id uint64) *state.Job {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[id]
}

// progress says how far the jobs are; ended is true if there are jobs, and all have
// ended.
func (c *checker) progress() (text string, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, ended = fmt.Sprintf("entry %d", c.index), len(c.last) > 0
	for _, j := range c.last {
		text += fmt.Sprintf("; %v is %s at round %d", j, j.State, j.Round)
		ended = ended && j.State.Final()
	}
	return text, ended
}

// promise notes what a client was told.
func (c *checker) promise(a ack) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acks = append(c.acks, a)
}

// deletes notes that a client asks to delete a job.
func (c *checker) deletes(job uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleting[job] = true
}

// wasRun reports whether a task of a done job was run.
func (c *checker) wasRun(job uint64, task int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.notRun[taskOf{job, uint32(task)}]
}

// checkFold checks that a trainer is given what it is given undisturbed.
func (c *checker) checkFold(seed, round uint64, res *round.Result) {
	want := c.given.data[seed].rounds[round]
	if res.Sum != nil {
		if got := string(partialBytes(res.Sum)); got == want.root {
			return
		}
		tally := "each task was counted once"
		for _, n := range res.Sum.F64[canaryWidth:] {
			if n != 1 {
				tally = fmt.Sprintf("tasks were counted %v times", res.Sum.F64[canaryWidth:])
			}
		}
		c.fail("fold", "job of seed %d, round %d: the sum is not the reference's (%s)", seed, round, tally)
		return
	}
	if len(res.Gathered) != len(want.parts) {
		c.fail("fold", "job of seed %d, round %d: %d results, want %d", seed, round, len(res.Gathered), len(want.parts))
		return
	}
	for task, part := range res.Gathered {
		if blobs.Sum(part) != want.parts[task] {
			c.fail("fold", "job of seed %d, round %d: result %d is not the reference's", seed, round, task)
		}
	}
}

// hears notes what a worker is sent: an epoch, and in a Run the tasks of a round. A
// worker must not obey an order of an epoch below the highest that it has heard of. What
// a frozen worker hears first when it goes on is not known, so it may obey what arrives
// meanwhile. A leader must not order a run that the log had recorded when it began to
// lead.
func (c *checker) hears(worker *host, epoch uint64, run *protocol.Run) {
	runs := worker.running()
	c.mu.Lock()
	defer c.mu.Unlock()
	if run != nil {
		o := order{worker: worker.name, epoch: epoch, job: run.Job, round: run.Round}
		stale := runs && epoch < c.heard[worker]
		if before, asked := c.orders[o]; !asked || before {
			c.orders[o] = stale
		}
		for _, u := range run.Tasks {
			if at, recorded := c.records[taskOf{run.Job, u}]; recorded && at < run.Epoch {
				c.fail("again", "the leader since %d has task %d of job %d computed, which entry %d recorded", run.Epoch, u,
					run.Job, at)
			}
		}
	}
	if runs {
		c.heard[worker] = max(c.heard[worker], epoch)
	}
}

// checkPart checks a node of a reduction on its way to the leader: its bytes, and that
// the worker was allowed to send it.
func (c *checker) checkPart(p *protocol.Partial) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ref := c.refs[p.Job]; ref == nil || int(p.Round) >= len(ref.rounds) {
		c.fail("node", "worker %s sent a node of job %d, round %d, which does not exist", p.Worker, p.Job, p.Round)
	} else if want := ref.rounds[p.Round].nodes[node{int(p.Level),
		int(p.Index)}]; string(partialBytes(p.Partial)) != want {
		c.fail("node", "worker %s sent node (%d, %d) of job %d, round %d, that is not the reference's", p.Worker, p.Level,
			p.Index, p.Job, p.Round)
	}
	if c.orders[order{worker: p.Worker, epoch: p.Epoch, job: p.Job, round: p.Round}] {
		c.fail("obey", "worker %s, who knew a later leader, answered an order of epoch %d: job %d, round %d", p.Worker,
			p.Epoch, p.Job, p.Round)
	}
}

// checkState checks each state when the first coordinator has it, and that every
// coordinator keeps what clients were told.
func (c *checker) checkState(h *host, st *state.State, entry []byte, r state.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.Index() > c.index { // entries are applied one by one
		c.index = st.Index()
		if r.Err == nil {
			c.checkEpoch(st, entry)
			c.checkEntry(entry)
		}
		c.checkDeletions(st)
		tokens := make(map[string]bool)
		for _, j := range st.Jobs() {
			if tokens[j.Token] {
				c.fail("token", "%v is the second job of token %s", j, j.Token)
			}
			tokens[j.Token] = true
			c.checkJob(j, st.Index())
			c.last[j.ID] = j
		}
	}
	for _, a := range c.acks {
		if st.Index() < a.index {
			continue
		}
		j, d := st.JobByToken(a.token), st.DeletedByToken(a.token)
		switch {
		case a.deleted:
			if j != nil || d == nil || d.ID != a.job {
				c.fail("ack", "%s: job %d was deleted, said the log, and is %v, %v", h.name, a.job, j, d)
			}
		case j == nil && c.deleting[a.job] && d != nil && d.ID == a.job:
		case j == nil || j.ID != a.job:
			c.fail("ack", "%s: the job submitted as %s was acknowledged as %d and is %v", h.name, a.token, a.job, j)
		case a.cancel && j.State != protocol.Cancelled:
			c.fail("ack", "%s: %v was cancelled, said the log, and is %s", h.name, j, j.State)
		}
	}
}

// checkEpoch checks that an accepted entry is of the present leader.
func (c *checker) checkEpoch(st *state.State, entry []byte) {
	var e struct{ Epoch, Job uint64 }
	switch kindOf(entry) {
	case protocol.EntryCommit:
		var commit protocol.CommitEntry
		if commit.Decode(entry) == nil {
			e.Epoch, e.Job = commit.Epoch, commit.Job
		}
	case protocol.EntryJobState, protocol.EntryResult, protocol.EntryWithhold, protocol.EntryFinish, protocol.EntrySuspect:
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
	default:
		return
	}
	if e.Epoch != st.Epoch() {
		c.fail("fence", "entry %d of kind %d about job %d is of epoch %d and was accepted in epoch %d", st.Index(),
			kindOf(entry), e.Job, e.Epoch, st.Epoch())
	}
}

// checkEntry checks what an accepted entry records, and that the blobs which it names
// would survive a power cut.
func (c *checker) checkEntry(entry []byte) {
	switch kindOf(entry) {
	case protocol.EntryResult:
		var e protocol.ResultEntry
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
		ref := c.refs[e.Job]
		if int(e.Round) > len(ref.rounds) || int(e.Task) >= len(ref.rounds[e.Round-1].parts) ||
			ref.rounds[e.Round-1].parts[e.Task] != e.Digest {
			c.fail("collected", "job %d, round %d: task %d was recorded as %.12s, which is not the reference's", e.Job, e.Round,
				e.Task, e.Digest)
		}
		if ref.runs != nil {
			c.recorded(c.index, e.Job, e.Task)
		}
		c.durable("a result", e.Digest)
	case protocol.EntryWithhold:
		var e protocol.WithholdEntry
		if protocol.DecodeEntry(entry, &e) == nil {
			c.withheld(&e)
		}
	case protocol.EntryFinish:
		var e protocol.FinishEntry
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
		for _, m := range e.Models {
			c.durable("a model", m.Blob)
		}
		for _, r := range e.Cells {
			c.durable("runs", r.Blob)
		}
	}
}

// durable checks that a blob would survive a power cut on a quorum, since the log refers
// to it.
func (c *checker) durable(what, digest string) {
	n := 0
	for _, d := range c.disks {
		if d.durable(digest) {
			n++
		}
	}
	if 2*n <= len(c.disks) {
		c.fail("durable", "the log refers to %s, blob %.12s, that %d of %d coordinators have on disk", what, digest, n,
			len(c.disks))
	}
}

// checkDeletions checks that a job is deleted only if a client asked for it and the job
// had ended. A deleted job must be remembered, and must not come back.
func (c *checker) checkDeletions(st *state.State) {
	for id, before := range c.last {
		if st.Job(id) != nil {
			continue
		}
		if !c.deleting[id] || !before.State.Final() || st.Deleted(id) == nil {
			c.fail("delete", "%v, which is %s, is missing", before, before.State)
		}
		c.deleted[id] = true
		delete(c.last, id)
	}
	for id := range c.deleted {
		if j := st.Job(id); j != nil {
			c.fail("delete", "%v was deleted and is back", j)
		}
	}
}

// checkJob checks a job in the state at index against the reference, and against the last
// state of the job.
func (c *checker) checkJob(j *state.Job, index uint64) {
	ref := c.refs[j.ID]
	if ref == nil {
		ref = c.given.reference(j.Job)
		c.refs[j.ID] = ref
	}
	before, known := c.last[j.ID]
	if known && j.Round < before.Round {
		c.fail("monotone", "%v went from round %d back to %d", j, before.Round, j.Round)
	}
	if known && before.State.Final() && j.State != before.State {
		c.fail("monotone", "%v was %s and is %s", j, before.State, j.State)
	}
	if j.State == protocol.Failed {
		c.fail("failed", "%v failed: %s", j, j.Error)
	}
	if j.Trainer != nil && (!known || before.Round != j.Round) &&
		(int(j.Round) > len(ref.states) || !bytes.Equal(j.Trainer, []byte(ref.states[j.Round-1]))) {
		c.fail("state", "%v: the state committed as round %d is not the reference's", j, j.Round)
	}
	if ref.runs != nil {
		c.checkRuns(before, j, index)
	} else if !known || before.Round != j.Round || before.State != j.State {
		c.checkCurve(j, ref)
	}
	if j.State == protocol.Cancelled && len(j.Models) > 0 {
		c.fail("cancel", "%v was cancelled and has a model", j)
	}
	if j.State != protocol.Done {
		return
	}
	if known && before.State != protocol.Done && ref.runs != nil {
		ref.digest = c.given.digestOf(j.Job, c.wantedRuns(j.ID)) // without the runs that are not run
	}
	digest := ""
	if j.Job.Cells != nil {
		var o pipeline.Outcome
		if json.Unmarshal(j.Outcome, &o) == nil {
			digest = o.ModelDigest
		}
	} else if len(j.Models) == 1 {
		digest = j.Models[0].Digest
	}
	if digest != ref.digest {
		c.fail("digest", "%v: models %v, want %s", j, j.Models, ref.digest)
	}
}

// checkCurve checks that the curve of a job has the points of the reference's at its
// round.
func (c *checker) checkCurve(j *state.Job, ref *reference) {
	want, got := ref.curve, ""
	switch {
	case j.State == protocol.Done:
	case j.Round == 0:
		want = ""
	case int(j.Round) <= len(ref.curves):
		want = ref.curves[j.Round-1]
	}
	if len(j.Curve) > 0 {
		line, err := curve.Decode(j.Curve)
		if err != nil {
			c.fail("curve", "%v: %v", j, err)
			return
		}
		got = curveText(line)
	}
	if got != want {
		c.fail("curve", "%v, round %d: the points are\n%s, the reference's\n%s", j, j.Round, got, want)
	}
}

// recorded notes that a run has ended by the entry at index: no other job may have ended
// it.
func (c *checker) recorded(index, job uint64, task uint32) {
	of := taskOf{job, task}
	if c.notRun[of] { // the first entry counts
		return
	}
	run := c.refs[job].runs[task]
	if other, known := c.ended[run]; known && other != job {
		c.fail("again", "run %+v of job %d had ended in job %d", run, job, other)
	}
	c.ended[run] = job
	if _, known := c.records[of]; !known {
		c.records[of] = index
	}
}

// withheld notes the tasks of an entry that have no result yet: they are not run. Their
// methods must have a budget.
func (c *checker) withheld(e *protocol.WithholdEntry) {
	j := c.last[e.Job].Job
	for _, task := range e.Tasks {
		of := taskOf{e.Job, task}
		if _, known := c.records[of]; known {
			continue
		}
		if run, _ := j.Cells.At(int(task)); j.Cells.Rows[run.Row].Budget == 0 {
			c.fail("budget", "task %d of job %d is not run, and has no budget", task, e.Job)
		}
		c.records[of], c.notRun[of] = c.index, true
	}
}

// checkRuns checks a job of runs: what is recorded stays as it is, and in a done job all
// runs have ended.
func (c *checker) checkRuns(before, j *state.Job, index uint64) {
	runs := c.refs[j.ID].runs
	if j.State == protocol.Done {
		n := 0
		for _, r := range j.Cells {
			n += r.Count
		}
		if n != len(runs) {
			c.fail("cells", "%v is done with %d of %d runs", j, n, len(runs))
		}
		if before != nil && before.State != protocol.Done {
			for task := range runs {
				c.recorded(index, j.ID, uint32(task))
			}
		}
		return
	}
	if before == nil {
		return
	}
	now := make(map[uint32]digests.Digest)
	for p := range j.Gathered {
		now[p.Task] = p.Digest
		if p.WasRun() == c.notRun[taskOf{j.ID, p.Task}] {
			c.fail("budget", "%v: task %d is run: %v", j, p.Task, p.WasRun())
		}
	}
	for p := range before.Gathered {
		if d, there := now[p.Task]; !there || d != p.Digest {
			c.fail("cells", "%v had the result %.12s of task %d and has %.12s", j, p.Digest, p.Task, now[p.Task])
		}
	}
}

// wantedRuns lists the outcomes of the runs of a job, by task; nil: it is not run.
func (c *checker) wantedRuns(job uint64) (encoded [][]byte) {
	for task, run := range c.refs[job].runs {
		if c.notRun[taskOf{job, uint32(task)}] {
			encoded = append(encoded, nil)
		} else {
			encoded = append(encoded, c.given.study[run])
		}
	}
	return encoded
}

// checkStored checks that the blobs of done jobs have the outcomes of their runs.
func (c *checker) checkStored() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, j := range c.last {
		if j.State != protocol.Done || j.Job.Cells == nil {
			continue
		}
		var outcomes [][]byte
		for _, ref := range j.Cells {
			var b []byte // from the first disk that has the blob
			err := error(blobs.ErrMissing)
			for i := 0; i < len(c.disks) && err != nil; i++ {
				b, err = c.disks[i].read(ref.Blob)
			}
			some, _, err := childjob.Cells(b, ref.Count)
			if err != nil {
				c.fail("cells", "%v: blob %.12s: %v", j, ref.Blob, err)
				return
			}
			outcomes = append(outcomes, some...)
		}
		for task, want := range c.wantedRuns(id) {
			if task >= len(outcomes) || !bytes.Equal(outcomes[task], want) {
				c.fail("cells", "%v: the stored outcome of task %d, run %+v, is not the reference's", j, task,
					c.refs[id].runs[task])
			}
		}
	}
}

// checkReplicas checks that states of the same index have the same bytes.
func (c *checker) checkReplicas(states map[string]*state.State) {
	seen := make(map[uint64][]byte)
	for name, st := range states {
		var b bytes.Buffer
		if err := st.Encode(&b); err != nil {
			c.fail("replica", "%s: %v", name, err)
			return
		}
		if other, ok := seen[st.Index()]; ok && !bytes.Equal(other, b.Bytes()) {
			c.fail("replica", "coordinators differ at entry %d", st.Index())
		}
		seen[st.Index()] = b.Bytes()
	}
}

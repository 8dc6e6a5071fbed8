package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/outcome/curve"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/num"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/protocol"
)

// Violation is a promise that was broken.
type Violation struct {
	Check string // which one
	Text  string
}

func (v *Violation) Error() string { return fmt.Sprintf("check %q: %s", v.Check, v.Text) }

// fail records a violation; the first counts, and ends the simulation.
func (s *Sim) fail(check, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(check, format, args...)
}

func (s *Sim) failLocked(check, format string, args ...any) {
	if s.broken == nil && !s.over {
		s.broken = &Violation{check, fmt.Sprintf(format, args...)}
		close(s.failed)
	}
}

// next implements watcher.
func (s *Sim) next(_, _ uint64) { s.reach(Dispatch) }

// fold implements watcher: what a trainer is given is what it is undisturbed.
func (s *Sim) fold(seed, round uint64, res *round.Result) {
	want := s.given.data[seed].rounds[round]
	if res.Sum != nil {
		if got := string(partialBytes(res.Sum)); got != want.root {
			s.fail("fold", "job of seed %d, round %d: the sum is not the reference's (%s)", seed, round, tally(res.Sum))
		}
		return
	}
	if len(res.Collected) != len(want.parts) {
		s.fail("fold", "job of seed %d, round %d: %d parts, want %d", seed, round, len(res.Collected), len(want.parts))
		return
	}
	for u, part := range res.Collected {
		if blobs.Sum(part) != want.parts[u] {
			s.fail("fold", "job of seed %d, round %d: part %d is not the reference's", seed, round, u)
		}
	}
}

// tally tells how often each unit is in a sum.
func tally(p *round.Partial) string {
	for _, n := range p.F64[canaryWidth:] {
		if n != 1 {
			return fmt.Sprintf("units were counted %v times", p.F64[canaryWidth:])
		}
	}
	return "each unit was counted once"
}

// compute implements watcher.
func (s *Sim) compute(seed, version uint64, u *round.Unit) time.Duration {
	r := num.NewStream(num.NewKey(s.seed^seed<<32, "sim/pace"), version, uint32(u.ID))
	if u.Scope == round.None {
		return time.Duration(20e6 + r.Uint64n(130e6))
	}
	return time.Duration(4e6 + r.Uint64n(21e6))
}

// arrives is shown each whole message that the network delivers.
func (s *Sim) arrives(to *host, message []byte) {
	kind, err := protocol.KindOf(message)
	if err != nil {
		return
	}
	switch kind {
	case protocol.KindBundle:
		var bundle protocol.Bundle
		if bundle.Decode(message) == nil {
			for _, one := range bundle.Messages {
				s.arrives(to, one)
			}
		}
	case protocol.KindLead:
		var lead protocol.Lead
		if lead.Decode(message) == nil {
			s.obeys(to, lead.Epoch, nil)
		}
	case protocol.KindRun:
		var run protocol.Run
		if run.Decode(message) == nil {
			s.obeys(to, run.Epoch, &run)
			s.orderedAgain(&run)
		}
	case protocol.KindPart:
		part := protocol.Part{Partial: new(round.Partial)}
		if part.Decode(message) == nil {
			s.node(&part)
			s.fenced(&part)
			s.reach(Partials)
		}
	case protocol.KindReplicate:
		s.reach(Replicate)
	}
}

// node checks a node of a reduction on its way to the leader.
func (s *Sim) node(p *protocol.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := s.refs[p.Job]
	if ref == nil || int(p.Round) >= len(ref.rounds) {
		s.failLocked("node", "worker %s sent a node of job %d, round %d, which is not", p.Worker, p.Job, p.Round)
		return
	}
	want := ref.rounds[p.Round].nodes[node{int(p.Level), int(p.Index)}]
	if string(partialBytes(p.Partial)) != want {
		s.failLocked("node", "worker %s sent node (%d, %d) of job %d, round %d, that is not the reference's", p.Worker, p.Level, p.Index, p.Job, p.Round)
	}
}

// order names what a worker was asked for.
type order struct {
	worker            string
	epoch, job, round uint64
}

// obeys notes what a worker hears: an order of an epoch below the highest that it
// has heard of is not to be obeyed. What a frozen worker hears first when it goes on
// is not known, so it may obey what arrives meanwhile.
func (s *Sim) obeys(worker *host, epoch uint64, run *protocol.Run) {
	runs := worker.runs()
	s.mu.Lock()
	defer s.mu.Unlock()
	if run != nil {
		o := order{worker.name, epoch, run.Job, run.Round}
		stale := runs && epoch < s.heard[worker]
		if was, asked := s.orders[o]; !asked || was {
			s.orders[o] = stale
		}
	}
	if runs {
		s.heard[worker] = max(s.heard[worker], epoch)
	}
}

// fenced checks that a worker did not answer an order that came too late.
func (s *Sim) fenced(p *protocol.Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders[order{p.Worker, p.Epoch, p.Job, p.Round}] {
		s.failLocked("obey", "worker %s, who knew a later leader, answered an order of epoch %d: job %d, round %d", p.Worker, p.Epoch, p.Job, p.Round)
	}
}

// proposed implements hooks.
func (s *Sim) proposed(_ *host, entry []byte) {
	switch kindOf(entry) {
	case protocol.EntryLead:
		s.reach(Takeover)
	case protocol.EntryCommit:
		s.reach(Committing)
	case protocol.EntryCollected:
		s.reach(Recording)
	case protocol.EntryFinish:
		s.reach(Finishing)
		s.tooLate(entry)
	}
}

// tooLate has a client cancel, in some runs, a job that is about to finish, just
// before it does. Of an experiment it is one of those that were submitted first, or the client would
// submit the same cells for ever.
func (s *Sim) tooLate(entry []byte) {
	var e protocol.FinishEntry
	if !s.hasty || protocol.DecodeEntry(entry, &e) != nil {
		return
	}
	s.mu.Lock()
	j := s.last[e.Job]
	s.mu.Unlock()
	if j.Experiment != "" && j.Submission() != firstStudy {
		return
	}
	done := s.log.slip(protocol.EncodeEntry(protocol.EntryCancel, protocol.CancelEntry{Job: e.Job}))
	s.tasks.Go(func() {
		select {
		case o := <-done:
			if o.err == nil {
				s.promise(ack{index: o.index, token: j.Token, job: j.ID, cancel: true})
			}
		case <-s.stopped:
		}
	})
}

// corrupt implements hooks.
func (s *Sim) corrupt(format string, args ...any) { s.fail("snapshot", format, args...) }

// committed implements hooks.
func (s *Sim) committed(_ *host, _ uint64, entry []byte) {
	if kindOf(entry) == protocol.EntryCommit {
		s.reach(Committed)
	}
}

// snapshot implements hooks.
func (s *Sim) snapshot(*host) { s.reach(Snapshot) }

// install implements hooks.
func (s *Sim) install(*host) { s.reach(Install) }

// applied implements hooks: it checks each state when a coordinator first has it,
// and that the others come to the same.
func (s *Sim) applied(h *host, st *state.State, entry []byte, r state.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Index() > s.index { // entries are applied one by one
		s.index = st.Index()
		if r.Err == nil {
			s.fence(st, entry)
			s.entry(entry)
		}
		s.jobs(st)
	}
	s.acks(h, st)
}

// fence checks that an entry which was accepted is of the current leader.
func (s *Sim) fence(st *state.State, entry []byte) {
	var e struct{ Epoch, Job uint64 }
	switch kindOf(entry) {
	case protocol.EntryCommit:
		var c protocol.CommitEntry
		if c.Decode(entry) == nil {
			e.Epoch, e.Job = c.Epoch, c.Job
		}
	case protocol.EntryJobState, protocol.EntryCollected, protocol.EntryWithhold, protocol.EntryFinish, protocol.EntrySuspect:
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
	default:
		return
	}
	if e.Epoch != st.Epoch() {
		s.failLocked("fence", "entry %d of kind %d about job %d is of epoch %d and was accepted in epoch %d", st.Index(), kindOf(entry), e.Job, e.Epoch, st.Epoch())
	}
}

// entry checks an entry that was accepted.
func (s *Sim) entry(entry []byte) {
	switch kindOf(entry) {
	case protocol.EntryCollected:
		var e protocol.CollectedEntry
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
		ref := s.refs[e.Job]
		if int(e.Round) > len(ref.rounds) || int(e.Unit) >= len(ref.rounds[e.Round-1].parts) || ref.rounds[e.Round-1].parts[e.Unit] != e.Digest {
			s.failLocked("collected", "job %d, round %d: unit %d was recorded as %.12s, which is not the reference's", e.Job, e.Round, e.Unit, e.Digest)
		}
		if ref.cells != nil {
			s.recorded(s.index, e.Job, e.Unit)
		}
		s.onMajority("a part", e.Digest)
	case protocol.EntryWithhold:
		var e protocol.WithholdEntry
		if protocol.DecodeEntry(entry, &e) == nil {
			s.withheld(s.index, &e)
		}
	case protocol.EntryFinish:
		var e protocol.FinishEntry
		if protocol.DecodeEntry(entry, &e) != nil {
			return
		}
		for _, m := range e.Models {
			s.onMajority("a model", m.Blob)
		}
		for _, c := range e.Cells {
			s.onMajority("cells", c.Blob)
		}
	}
}

// onMajority checks that a blob which the log refers to would survive a power cut
// on a majority.
func (s *Sim) onMajority(what, digest string) {
	n := 0
	for _, p := range s.coordinators {
		if p.disk.durable(digest) {
			n++
		}
	}
	if 2*n <= len(s.coordinators) {
		s.failLocked("durable", "the log refers to %s, blob %.12s, that %d of %d coordinators have on disk", what, digest, n, len(s.coordinators))
	}
}

// jobs checks all jobs of a new state.
func (s *Sim) jobs(st *state.State) {
	s.deletions(st)
	tokens := make(map[string]bool)
	for _, j := range st.Jobs() {
		if tokens[j.Token] {
			s.failLocked("token", "%v is the second job of token %s", j, j.Token)
		}
		tokens[j.Token] = true
		ref := s.refs[j.ID]
		if ref == nil {
			ref = s.given.reference(j.Job)
			s.refs[j.ID] = ref
		}
		was, known := s.last[j.ID]
		if known && j.Round < was.Round {
			s.failLocked("monotone", "%v went from round %d back to %d", j, was.Round, j.Round)
		}
		if known && was.State.Final() && j.State != was.State {
			s.failLocked("monotone", "%v was %s and is %s", j, was.State, j.State)
		}
		if j.State == protocol.Failed {
			s.failLocked("failed", "%v failed: %s", j, j.Error)
		}
		if j.Trainer != nil && (!known || was.Round != j.Round) && (int(j.Round) > len(ref.states) || !bytes.Equal(j.Trainer, []byte(ref.states[j.Round-1]))) {
			s.failLocked("state", "%v: the state committed as round %d is not the reference's", j, j.Round)
		}
		if ref.cells != nil {
			s.cells(was, j, st.Index())
		} else if !known || was.Round != j.Round || was.State != j.State {
			s.curve(j, ref)
		}
		if j.State == protocol.Cancelled && len(j.Models) > 0 {
			s.failLocked("cancel", "%v was cancelled and has a model", j)
		}
		if j.State == protocol.Done && was != nil && was.State != protocol.Done && ref.cells != nil {
			ref.digest = s.given.digestOf(j.Job, s.wantedCells(j.ID)) // without those that are not run
		}
		if j.State == protocol.Done && digestOf(j) != ref.digest {
			s.failLocked("digest", "%v: models %v, want %s", j, j.Models, ref.digest)
		}
		s.last[j.ID] = j
	}
}

// digestOf returns the digest of what a done job made: of its one model, or of its cells.
func digestOf(j *state.Job) string {
	if j.Job.Cells != nil {
		var o pipeline.Outcome
		if json.Unmarshal(j.Outcome, &o) != nil {
			return ""
		}
		return o.ModelDigest
	}
	if len(j.Models) != 1 {
		return ""
	}
	return j.Models[0].Digest
}

// deletions checks that jobs go only where a client asked for it and once they have
// ended, are remembered, and do not come back.
func (s *Sim) deletions(st *state.State) {
	for id, was := range s.last {
		if st.Job(id) != nil {
			continue
		}
		if !s.deleting[id] || !was.State.Final() || st.Deleted(id) == nil {
			s.failLocked("delete", "%v, which is %s, is gone", was, was.State)
		}
		s.gone[id] = true
		delete(s.last, id)
	}
	for id := range s.gone {
		if j := st.Job(id); j != nil {
			s.failLocked("delete", "%v was deleted and is back", j)
		}
	}
}

// curve checks that a job's curve has the points of the reference's at its round.
func (s *Sim) curve(j *state.Job, ref *reference) {
	want, got := ref.curve, ""
	switch {
	case j.State == protocol.Done:
	case j.Round == 0:
		want = ""
	case int(j.Round) <= len(ref.curves):
		want = ref.curves[j.Round-1]
	}
	if len(j.Curve) > 0 {
		c, err := curve.Decode(j.Curve)
		if err != nil {
			s.failLocked("curve", "%v: %v", j, err)
			return
		}
		got = curveText(c)
	}
	if got != want {
		s.failLocked("curve", "%v, round %d: the points are\n%s, the reference's\n%s", j, j.Round, got, want)
	}
}

// ack is a promise to a client, made when the log had index entries.
type ack struct {
	index           uint64
	token           string
	job             uint64
	cancel, deleted bool
}

// acks checks that a state keeps what clients were told.
func (s *Sim) acks(h *host, st *state.State) {
	for _, a := range s.promised {
		if st.Index() < a.index {
			continue
		}
		j := st.JobByToken(a.token)
		d := st.DeletedByToken(a.token)
		switch {
		case a.deleted:
			if j != nil || d == nil || d.ID != a.job {
				s.failLocked("ack", "%s: job %d was deleted, said the log, and is %v, %v", h.name, a.job, j, d)
			}
		case j == nil && s.deleting[a.job] && d != nil && d.ID == a.job:
		case j == nil || j.ID != a.job:
			s.failLocked("ack", "%s: the job submitted as %s was acknowledged as %d and is %v", h.name, a.token, a.job, j)
		case a.cancel && j.State != protocol.Cancelled:
			s.failLocked("ack", "%s: %v was cancelled, said the log, and is %s", h.name, j, j.State)
		}
	}
}

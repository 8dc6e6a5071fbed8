package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// submit submits a job, again with the same token until it is acknowledged.
func (s *Sim) submit(ctx context.Context, seed uint64) *state.Job {
	entry := s.submission(seed)
	index, value, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntrySubmit, entry))
	if err != nil {
		return nil
	}
	j := value.(*state.Job)
	s.promise(ack{index: index, token: entry.Token, job: j.ID})
	return j
}

func (s *Sim) submission(seed uint64) protocol.SubmitEntry {
	e := protocol.SubmitEntry{
		Token: fmt.Sprintf("token-%d", seed), Name: fmt.Sprintf("canary-%d", seed), Dataset: dataName, Job: s.given.data[seed].job, AuditPPM: s.audit,
	}
	if s.nameless { // else the name alone would tell that it is the same
		e.Name = ""
	}
	return e
}

// remove deletes a job that has ended until that is acknowledged, and sends its
// submission once more, which must be refused.
func (s *Sim) remove(ctx context.Context, j *state.Job, seed uint64) {
	s.mu.Lock()
	s.deleting[j.ID] = true
	s.mu.Unlock()
	index, _, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntryJobsDelete, protocol.JobsDeleteEntry{Jobs: []uint64{j.ID}}))
	if err != nil {
		return
	}
	s.promise(ack{index: index, token: j.Token, job: j.ID, deleted: true})
	_, again, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntrySubmit, s.submission(seed)))
	if err == nil {
		s.fail("delete", "%v was deleted, and its submission makes %v", j, again)
	}
}

// cancel cancels a job until that is acknowledged, or refused because the job has
// ended; then the index is 0.
func (s *Sim) cancel(ctx context.Context, j *state.Job) (index uint64) {
	entry := protocol.EncodeEntry(protocol.EntryCancel, protocol.CancelEntry{Job: j.ID})
	index, _, err := s.ask(ctx, entry)
	if err != nil {
		return 0
	}
	s.promise(ack{index: index, token: j.Token, job: j.ID, cancel: true})
	return index
}

// rest pauses a job and resumes it.
func (s *Sim) rest(ctx context.Context, j *state.Job, d time.Duration) {
	if _, _, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntryPause, protocol.PauseEntry{Job: j.ID})); err != nil {
		return // it has ended
	}
	wait.For(ctx, d)
	s.ask(ctx, protocol.EncodeEntry(protocol.EntryResume, protocol.ResumeEntry{Job: j.ID}))
}

func (s *Sim) promise(a ack) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.promised = append(s.promised, a)
}

// answerIn is how long a client waits for one answer.
const answerIn = 700 * time.Millisecond

// ask proposes an entry to whichever coordinator leads, until one answers. The
// error is ctx's, or why the state machine refuses.
func (s *Sim) ask(ctx context.Context, entry []byte) (uint64, any, error) {
	for ctx.Err() == nil {
		for _, p := range s.coordinators {
			index, value, err := askOne(ctx, s.view(p), entry)
			if err == nil || errors.Is(err, state.ErrFinal) || errors.Is(err, state.ErrDeleted) {
				return index, value, err
			}
		}
		wait.For(ctx, heartbeat/2)
	}
	return 0, nil, ctx.Err()
}

func askOne(ctx context.Context, v *view, entry []byte) (uint64, any, error) {
	if v == nil || !v.host.runs() {
		return 0, nil, errors.New("sim: nobody answers")
	}
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	return v.Propose(ctx, entry)
}

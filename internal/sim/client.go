package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/protocol"
)

// submit submits a job, again with the same token until it is acknowledged.
func (s *Sim) submit(ctx context.Context, seed uint64) *state.Job {
	token, name := fmt.Sprintf("token-%d", seed), fmt.Sprintf("canary-%d", seed)
	if s.nameless { // else the name alone would tell that it is the same
		name = ""
	}
	entry := protocol.EncodeEntry(protocol.EntrySubmit, protocol.SubmitEntry{
		Token: token, Name: name, Dataset: dataName, Job: s.given.data[seed].job, AuditPPM: s.audit,
	})
	index, value, err := s.ask(ctx, entry)
	if err != nil {
		return nil
	}
	j := value.(*state.Job)
	s.promise(ack{index: index, token: token, job: j.ID})
	return j
}

// cancel cancels a job until that is acknowledged, or refused because the job has
// ended.
func (s *Sim) cancel(ctx context.Context, j *state.Job) {
	entry := protocol.EncodeEntry(protocol.EntryCancel, protocol.CancelEntry{Job: j.ID})
	if index, _, err := s.ask(ctx, entry); err == nil {
		s.promise(ack{index: index, token: j.Token, job: j.ID, cancel: true})
	}
}

// rest pauses a job and resumes it.
func (s *Sim) rest(ctx context.Context, j *state.Job, d time.Duration) {
	if _, _, err := s.ask(ctx, protocol.EncodeEntry(protocol.EntryPause, protocol.PauseEntry{Job: j.ID})); err != nil {
		return // it has ended
	}
	sleep(ctx, d)
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
			if err == nil || errors.Is(err, state.ErrFinal) {
				return index, value, err
			}
		}
		sleep(ctx, heartbeat/2)
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

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

package jobs

import (
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// A worker that computes nothing has a reason, whatever the jobs do.
func TestWhyAWorkerIsIdle(t *testing.T) {
	job := func(id uint64, name string, s protocol.JobState) *state.Job {
		return &state.Job{ID: id, Name: name, State: s, Job: &round.Job{Numerics: round.Numerics}}
	}
	one := []*state.Job{job(1, "one", protocol.Running)}
	waits := map[uint64]Wait{1: {protocol.WaitCommit, "nothing can be recorded"}}
	for _, test := range []struct {
		what  string
		idle  dispatch.Idle
		all   []*state.Job
		waits map[uint64]Wait
		want  protocol.IdleReason
		says  string
	}{
		{"no job", dispatch.Idle{}, nil, nil, protocol.IdleNoJob, "no job is running"},
		{"all have ended", dispatch.Idle{}, []*state.Job{job(1, "a", protocol.Done), job(2, "b", protocol.Failed)}, nil, protocol.IdleNoJob, "no job is running"},
		{"paused", dispatch.Idle{}, []*state.Job{job(1, "a", protocol.Done), job(2, "b", protocol.Paused)}, nil, protocol.IdlePaused, "no job is running; paused jobs: b; to resume a job: coppice job resume NAME"},
		{"a job begins", dispatch.Idle{}, append(one, job(2, "b", protocol.Paused)), nil, protocol.IdleNextRound, "job one is about to start or to end"},
		{"a job waits", dispatch.Idle{}, one, waits, protocol.IdleJobWaits, "job one is waiting: nothing can be recorded"},
		{"refused", dispatch.Idle{Reason: protocol.IdleRefused, Text: "it speaks protocol 9"}, one, waits, protocol.IdleRefused, "it speaks protocol 9"},
		{"few tasks", dispatch.Idle{Reason: protocol.IdleFewTasks, Job: 1, Text: "1 task"}, one, nil, protocol.IdleFewTasks, "job one: 1 task"},
		{"few tasks of a job that waits", dispatch.Idle{Reason: protocol.IdleFewTasks, Job: 1, Text: "1 task"}, one, waits, protocol.IdleJobWaits, "job one is waiting: nothing can be recorded"},
		{"memory", dispatch.Idle{Reason: protocol.IdleMemory, Job: 1, Text: "2 of 1 KiB"}, one, waits, protocol.IdleMemory, "job one: 2 of 1 KiB"},
		{"deleted meanwhile", dispatch.Idle{Reason: protocol.IdleShards, Job: 7, Text: "none yet"}, one, nil, protocol.IdleShards, "job 7: none yet"},
	} {
		workers := []protocol.Worker{{ID: "busy", Busy: 1}, {ID: "w"}}
		AddIdle(workers, map[string]dispatch.Idle{"w": test.idle, "left": test.idle}, test.all, test.waits)
		if workers[0].IdleReason != "" || workers[0].Idle != "" {
			t.Errorf("%s: the busy worker is idle: %+v", test.what, workers[0])
		}
		if got := workers[1]; got.IdleReason != test.want || got.Idle != test.says {
			t.Errorf("%s: %s, %q; want %s, %q", test.what, got.IdleReason, got.Idle, test.want, test.says)
		}
	}
}

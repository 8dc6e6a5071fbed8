package jobs

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/protocol"
)

// available returns the facts of a leader whose jobs all find these workers.
func available(a dispatch.Availability) *Facts {
	return &Facts{Concurrent: 1, Start: protocol.StartWorker("h:7100", ""), Workers: func(uint64) dispatch.Availability {
		return a
	}}
}

// TestWhatAJobWaitsFor: everything that a job may wait for has its reason, and a text with what is known and the
// command that helps.
func TestWhatAJobWaitsFor(t *testing.T) {
	own := &round.Job{Numerics: round.Numerics}
	running := &state.Job{ID: 1, Name: "one", State: protocol.Running, Job: own}
	foreign := &state.Job{ID: 1, Name: "one", State: protocol.Running, Job: &round.Job{Numerics: round.Numerics + 1}}
	usable := available(dispatch.Availability{Usable: 1, Unable: []string{"w1"}, Quarantined: []string{"w2"}})
	stuck, lonely := *usable, *usable
	stuck.Unrecorded, lonely.NATS = "the disk is full", "it is cut off"
	for _, test := range []struct {
		what  string
		job   *state.Job
		facts *Facts
		want  protocol.WaitReason
		says  []string
	}{
		{"a worker is there", running, usable, "", nil},
		{"it stops", running, available(dispatch.Availability{Usable: 1, Stops: "no room"}), protocol.WaitRetry,
			[]string{"no room", "see: coppice cluster"}},
		{"a young leader", running, available(dispatch.Availability{Unknown: true}), "", nil},
		{"not known", running, &Facts{Concurrent: 1}, "", nil},
		{"no worker", running, available(dispatch.Availability{}), protocol.WaitNoWorker,
			[]string{"coppice worker --join h:7100 --dir"}},
		{"memory", running, available(dispatch.Availability{Unable: []string{"w1", "w2"}, Unreachable: []string{"w3"}}),
			protocol.WaitMemory, []string{"w1, w2", "--memory"}},
		{"unreachable", running, available(dispatch.Availability{Unreachable: []string{"w3"}, Quarantined: []string{"w4"}}),
			protocol.WaitUnreachable, []string{"w3", "coppice worker"}},
		{"distrusted", running, available(dispatch.Availability{Quarantined: []string{"w4"}}), protocol.WaitQuarantined,
			[]string{"w4", "coppice cluster"}},
		{"refused", running, available(dispatch.Availability{Refused: []string{"w5: it speaks protocol 9"}}),
			protocol.WaitRefused, []string{"w5: it speaks protocol 9"}},
		{"no NATS", running, &lonely, protocol.WaitNATS, []string{"it is cut off", "coppice cluster members"}},
		{"nothing recorded", running, &stuck, protocol.WaitCommit, []string{"the disk is full", "coppice cluster members"}},
		{"numerics", foreign, &stuck, protocol.WaitNumerics, []string{fmt.Sprint(round.Numerics + 1)}},
	} {
		got := Waits([]*state.Job{test.job}, test.facts)[1]
		if got.Reason != test.want || (got.Text == "") != (test.want == "") {
			t.Errorf("%s: %+v, want %q", test.what, got, test.want)
		}
		for _, part := range test.says {
			if !strings.Contains(got.Text, part) {
				t.Errorf("%s: %q lacks %q", test.what, got.Text, part)
			}
		}
	}
}

// TestAJobWaitsForLostBlobs: a job that stops again and again for a lost blob says which blobs it needs, and what
// helps.
func TestAJobWaitsForLostBlobs(t *testing.T) {
	shard, trainer, split, weights := blobs.Sum([]byte("s")), blobs.Sum([]byte("t")), blobs.Sum([]byte("f")),
		blobs.Sum([]byte("w"))
	job := &state.Job{ID: 1, Name: "one", Dataset: "set", State: protocol.Running, TrainerBlob: trainer,
		Job: &round.Job{Numerics: round.Numerics, Weights: weights}}
	job.Job.Split.Assigned = split
	job.Manifest = &dataset.Manifest{Shards: []dataset.ShardRef{{Digest: blobs.Sum(nil)}, {Digest: shard}}}
	stops := dispatch.Availability{Usable: 1, Stops: "nobody has it"}
	for _, test := range []struct {
		what string
		a    dispatch.Availability
		lost []string
		want protocol.WaitReason
		says []string
	}{
		{"nothing is lost", stops, nil, protocol.WaitRetry, []string{"nobody has it"}},
		{"another's blob", stops, []string{blobs.Sum([]byte("other"))}, protocol.WaitRetry, nil},
		{"it runs all the same", dispatch.Availability{Usable: 1}, []string{shard}, "", nil},
		{"no worker", dispatch.Availability{}, []string{shard}, protocol.WaitNoWorker, nil},
		{"a shard", stops, []string{shard}, protocol.WaitBlobs, []string{"shard 1 (" + shard[:12] + ")",
			"import dataset set again", "coppice dataset import"}},
		{"its state", stops, []string{trainer}, protocol.WaitBlobs, []string{"the job's training state (" + trainer[:12] +
			")", "coppice job cancel one"}},
		{"folds and weights", stops, []string{split, weights}, protocol.WaitBlobs,
			[]string{split[:12], weights[:12], "coppice job cancel one"}},
	} {
		f := available(test.a)
		f.Lost = func(digest string) bool { return slices.Contains(test.lost, digest) }
		got := Waits([]*state.Job{job}, f)[1]
		if got.Reason != test.want {
			t.Errorf("%s: %+v, want %q", test.what, got, test.want)
		}
		for _, part := range test.says {
			if !strings.Contains(got.Text, part) {
				t.Errorf("%s: %q lacks %q", test.what, got.Text, part)
			}
		}
	}
}

// TestMissingBlobsArePassing: a blob, or a folder, that is missing on a coordinator stops a job for a while, and fails
// none.
func TestMissingBlobsArePassing(t *testing.T) {
	for _, err := range []error{blobs.ErrMissing, &fs.PathError{Op: "open", Path: "blobs", Err: syscall.ENOENT}} {
		if !passing(fmt.Errorf("training state: %w", err)) {
			t.Errorf("a job fails for %v", err)
		}
	}
}

// TestPlacesInTheQueue: each job that decide leaves in the queue is told its place there. A job that waits for nothing
// is told nothing.
func TestPlacesInTheQueue(t *testing.T) {
	states := []protocol.JobState{protocol.Queued, protocol.Queued, protocol.Running, protocol.Paused, protocol.Done,
		protocol.Failed}
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(t, "limit")
		var all []*state.Job
		run := 0
		for i := range rapid.IntRange(0, 12).Draw(t, "jobs") {
			s := rapid.SampledFrom(states).Draw(t, "state")
			if s == protocol.Running && run == limit {
				s = protocol.Queued
			}
			if s == protocol.Running {
				run++
			}
			numerics := round.Numerics
			if s == protocol.Queued && rapid.IntRange(0, 5).Draw(t, "foreign") == 0 {
				numerics++
			}
			all = append(all, &state.Job{ID: uint64(i + 1), Name: fmt.Sprint("j", i+1), State: s,
				Job: &round.Job{Numerics: numerics}})
		}
		f := available(dispatch.Availability{Usable: 1})
		f.Concurrent = limit
		waits := Waits(all, f)
		start, _ := decide(all, nil, limit, make(map[protocol.JobState]int))
		place := 0
		for _, j := range all {
			want := protocol.WaitReason("")
			switch {
			case foreign(j):
				want = protocol.WaitNumerics
			case j.State == protocol.Queued && !slices.Contains(start, j):
				want = protocol.WaitQueue
				place++
			}
			got := waits[j.ID]
			if got.Reason != want || want == protocol.WaitQueue && !strings.Contains(got.Text, fmt.Sprintf("place %d ", place)) {
				t.Fatalf("%s, %s, waits for %+v, want %q at place %d; %d run at once", j.Name, j.State, got, want, place, limit)
			}
		}
	})
}

// TestOtherNumericsWait: a job of another arithmetic version takes no place, also if an earlier leader ran it, and says
// what it waits for.
func TestOtherNumericsWait(t *testing.T) {
	own := &round.Job{Numerics: round.Numerics}
	other := &round.Job{Numerics: round.Numerics + 1}
	list := []*state.Job{
		{ID: 1, State: protocol.Running, Job: other}, {ID: 2, State: protocol.Queued, Job: other},
		{ID: 3, State: protocol.Queued, Job: own}, {ID: 4, State: protocol.Done, Job: other},
	}
	start, _ := decide(list, nil, 1, make(map[protocol.JobState]int))
	if len(start) != 1 || start[0].ID != 3 {
		t.Errorf("start %v, want job 3 alone", start)
	}
	waits := Waits(list, &Facts{Concurrent: 1})
	for i, want := range []bool{true, true, false, false} {
		if got := waits[list[i].ID]; (got.Reason == protocol.WaitNumerics) != want || (got.Text != "") != want {
			t.Errorf("job %d waits for %+v", i+1, got)
		}
	}
}

// TestWhyAWorkerIsIdle: a worker that computes nothing has a reason, in every state of the jobs.
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
		{"all have ended", dispatch.Idle{}, []*state.Job{job(1, "a", protocol.Done), job(2, "b", protocol.Failed)}, nil,
			protocol.IdleNoJob, "no job is running"},
		{"paused", dispatch.Idle{}, []*state.Job{job(1, "a", protocol.Done), job(2, "b", protocol.Paused)}, nil,
			protocol.IdlePaused, "no job is running; paused jobs: b; to resume a job: coppice job resume NAME"},
		{"a job begins", dispatch.Idle{}, append(one, job(2, "b", protocol.Paused)), nil, protocol.IdleNextRound,
			"job one is about to start or to end"},
		{"a job waits", dispatch.Idle{}, one, waits, protocol.IdleJobWaits, "job one is waiting: nothing can be recorded"},
		{"refused", dispatch.Idle{Reason: protocol.IdleRefused, Text: "it speaks protocol 9"}, one, waits,
			protocol.IdleRefused, "it speaks protocol 9"},
		{"few tasks", dispatch.Idle{Reason: protocol.IdleFewTasks, Job: 1, Text: "1 task"}, one, nil, protocol.IdleFewTasks,
			"job one: 1 task"},
		{"few tasks of a job that waits", dispatch.Idle{Reason: protocol.IdleFewTasks, Job: 1, Text: "1 task"}, one, waits,
			protocol.IdleJobWaits, "job one is waiting: nothing can be recorded"},
		{"memory", dispatch.Idle{Reason: protocol.IdleMemory, Job: 1, Text: "2 of 1 KiB"}, one, waits, protocol.IdleMemory,
			"job one: 2 of 1 KiB"},
		{"deleted meanwhile", dispatch.Idle{Reason: protocol.IdleShards, Job: 7, Text: "none yet"}, one, nil,
			protocol.IdleShards, "job 7: none yet"},
	} {
		workers := []protocol.Worker{{ID: "busy", Busy: 1}, {ID: "w"}}
		Explain(workers, map[string]dispatch.Idle{"w": test.idle, "left": test.idle}, test.all, test.waits,
			func(job uint64) []string { return []string{"busy", fmt.Sprintf("of job %d", job)} })
		running := 0
		for _, j := range test.all {
			if j.State == protocol.Running {
				running++
			}
		}
		if len(workers[0].Jobs) != running || len(workers[1].Jobs) != 0 {
			t.Errorf("%s: %q and %q of %d running jobs", test.what, workers[0].Jobs, workers[1].Jobs, running)
		}
		if workers[0].IdleReason != "" || workers[0].Idle != "" {
			t.Errorf("%s: the busy worker is idle: %+v", test.what, workers[0])
		}
		if got := workers[1]; got.IdleReason != test.want || got.Idle != test.says {
			t.Errorf("%s: %s, %q; want %s, %q", test.what, got.IdleReason, got.Idle, test.want, test.says)
		}
	}
}

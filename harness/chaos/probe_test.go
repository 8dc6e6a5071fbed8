package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
)

const runsLine = `time=2026-01-01T00:00:00Z level=INFO msg="the job runs" job=12 name=ldlf-1 round=%d step=%d epoch=%d` + "\n"

func TestParseRestart(t *testing.T) {
	line := fmt.Sprintf(runsLine, 30, 29, 400)
	if got, ok := parseRestart(line, 12); !ok || got != (restart{epoch: 400, round: 30, step: 29}) {
		t.Errorf("%+v, %v", got, ok)
	}
	for _, other := range []string{strings.Replace(line, "the job runs", "the job is done", 1), "", "x=y msg"} {
		if got, ok := parseRestart(other, 12); ok {
			t.Errorf("%q gave %+v", other, got)
		}
	}
	if _, ok := parseRestart(line, 13); ok {
		t.Error("another job's line passed")
	}
}

// The last leader's line counts, whichever log it is in, and none before the mark.
func TestRestarted(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	old := fmt.Sprintf(runsLine, 1, 1, 999)
	write(t, a, old+fmt.Sprintf(runsLine, 20, 19, 300))
	write(t, b, fmt.Sprintf(runsLine, 30, 29, 400))
	m := &mark{job: 12, logs: map[string]int64{a: int64(len(old)), b: 0}}
	if got, ok, err := m.restarted(); err != nil || !ok || got.epoch != 400 || got.round != 30 {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	m.job = 13
	if _, ok, err := m.restarted(); err != nil || ok {
		t.Errorf("another job: %v, %v", ok, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fakeRig has one coordinator, which answers with the job as told.
func fakeRig(t *testing.T) (*rig, *atomic.Pointer[protocol.JobInfo]) {
	t.Helper()
	var job atomic.Pointer[protocol.JobInfo]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if j := job.Load(); j != nil {
			json.NewEncoder(w).Encode(j)
			return
		}
		http.Error(w, "no leader", http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	return &rig{looks: proc.NewObserver(nil, &http.Transport{}), servers: []string{s.Listener.Addr().String()}}, &job
}

func at(rounds, step uint64) *protocol.JobInfo {
	return &protocol.JobInfo{ID: 12, State: protocol.Running, Rounds: rounds, Progress: &round.Progress{Step: step}}
}

// Progress counts only beyond what was in flight at the fault, or beyond where a
// new leader took the job up.
func TestAwait(t *testing.T) {
	log := filepath.Join(t.TempDir(), "a")
	tests := map[string]struct {
		restarted string
		early     *protocol.JobInfo // proves nothing
		late      *protocol.JobInfo
		redone    uint64
	}{
		"the same leader":    {"", at(101, 101), at(103, 102), 0},
		"a new leader":       {fmt.Sprintf(runsLine, 80, 79, 5), at(80, 79), at(81, 80), 21},
		"the job has ended":  {"", at(90, 90), &protocol.JobInfo{ID: 12, State: protocol.Done}, 0},
		"commits in flight":  {fmt.Sprintf(runsLine, 99, 98, 5), at(99, 98), at(100, 99), 2},
		"nobody answers yet": {"", nil, at(200, 200), 0},
	}
	for name, x := range tests {
		t.Run(name, func(t *testing.T) {
			write(t, log, x.restarted)
			r, job := fakeRig(t)
			job.Store(x.early)
			m := &mark{job: 12, step: 100, slack: 1, logs: map[string]int64{log: 0}}
			end := make(chan error, 1)
			ctx := testkit.Context(t)
			go func() {
				got, err := r.await(ctx, m, time.Now())
				if err == nil && got.redone != x.redone {
					err = fmt.Errorf("%d steps redone, want %d", got.redone, x.redone)
				}
				end <- err
			}()
			select {
			case err := <-end:
				t.Fatalf("it took the early commit for progress, %v", err)
			case <-time.After(10 * pollEvery):
			}
			job.Store(x.late)
			if err := <-end; err != nil {
				t.Error(err)
			}
		})
	}
}

// A cluster that does not recover is an error that says so.
func TestAwaitInVain(t *testing.T) {
	r, job := fakeRig(t)
	job.Store(at(1, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 5*pollEvery)
	defer cancel()
	if _, err := r.await(ctx, &mark{job: 12, name: "ldlf-1", step: 50, slack: 1}, time.Now()); err == nil ||
		!strings.Contains(err.Error(), "ldlf-1") {
		t.Errorf("got %v", err)
	}
}

// What a leader has folded is known by its metrics, but for gather rounds.
func TestFolded(t *testing.T) {
	s := proc.Series{`coppice_job_progress_ratio{name="ldlf-1"}`: 0.12345}
	for _, x := range []struct {
		m    mark
		want uint64
	}{{mark{name: "ldlf-1", steps: 20000, slack: 1}, 2469}, {mark{name: "ldlf-2", steps: 20000, slack: 1}, 0},
		{mark{name: "ldlf-1", steps: 100, slack: 3}, 0}} {
		if got := x.m.folded(s); got != x.want {
			t.Errorf("%s of %d steps: %d, want %d", x.m.name, x.m.steps, got, x.want)
		}
	}
}

func TestTrack(t *testing.T) {
	var tr track
	for i := range uint64(20) {
		tr.see(at(i, 10*i))
		tr.see(at(i, 10*i)) // a beat of the watch
	}
	j, commits := tr.state()
	if j.Rounds != 19 || len(commits) != maxCommits || commits[0].step != 80 {
		t.Errorf("%d commits, %+v", len(commits), commits)
	}
	tr.see(&protocol.JobInfo{ID: 13, State: protocol.Running})
	if _, commits := tr.state(); len(commits) != 1 {
		t.Errorf("another job has %d commits", len(commits))
	}
	tr.forget()
	if _, commits := tr.state(); len(commits) != 0 {
		t.Error("forgotten commits are there")
	}
}

func TestPace(t *testing.T) {
	start := time.Unix(0, 0)
	after := func(ms int, step uint64) commit {
		return commit{at: start.Add(time.Duration(ms) * time.Millisecond), step: step}
	}
	if interval := pace([]commit{after(0, 0), after(200, 100), after(400, 200), after(1000, 500)}); interval != 200*
		time.Millisecond {
		t.Errorf("%v", interval)
	}
	if interval := pace([]commit{after(0, 7)}); interval != 0 {
		t.Errorf("one commit: %v", interval)
	}
}

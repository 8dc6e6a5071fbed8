package chaos

import (
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// track holds the last commits of the job whose commits are timed.
type track struct {
	mu      sync.Mutex
	job     *protocol.JobInfo
	commits []commit
}

// commit is a committed state as a client saw it come.
type commit struct {
	at     time.Time
	rounds uint64
	step   uint64 // or, of a gather round, finished tasks
}

// maxCommits is how many commits are kept.
const maxCommits = 12

// see takes a line of the job's watch.
func (t *track) see(j *protocol.JobInfo) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job == nil || t.job.ID != j.ID {
		t.commits = nil
	}
	t.job = j
	c := commit{now, j.Rounds, stepOf(j)}
	if n := len(t.commits); n > 0 && t.commits[n-1].rounds == c.rounds && t.commits[n-1].step == c.step {
		return
	}
	if t.commits = append(t.commits, c); len(t.commits) > maxCommits {
		t.commits = t.commits[1:]
	}
}

// stepOf returns how far a job is: its step, or the finished tasks of a collected
// round.
func stepOf(j *protocol.JobInfo) uint64 {
	if j.Progress == nil || j.Tasks > 1 {
		return uint64(j.Gathered)
	}
	return max(j.Progress.Step, uint64(j.Gathered))
}

// stepsOf returns the step at which a job ends, or 0 if it is not known.
func stepsOf(j *protocol.JobInfo) uint64 {
	if j.Tasks > 1 {
		return uint64(j.Tasks)
	}
	if j.Progress == nil {
		return 0
	}
	return j.Progress.Steps
}

// forget forgets what was seen before a fault.
func (t *track) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commits = nil
}

// state returns the job and what is kept of its commits.
func (t *track) state() (*protocol.JobInfo, []commit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.job, slices.Clone(t.commits)
}

// interval returns the median time between commits, and rate the steps a second.
func pace(commits []commit) (interval time.Duration, rate float64) {
	var gaps []time.Duration
	for i := 1; i < len(commits); i++ {
		gaps = append(gaps, commits[i].at.Sub(commits[i-1].at))
	}
	if len(gaps) == 0 {
		return 0, 0
	}
	first, last := commits[0], commits[len(commits)-1]
	if d := last.at.Sub(first.at).Seconds(); d > 0 && last.step > first.step {
		rate = float64(last.step-first.step) / d
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2], rate
}

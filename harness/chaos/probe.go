package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// mark is what was known right before a fault.
type mark struct {
	job      uint64
	name     string
	steps    uint64           // of the whole job
	step     uint64           // that the leader had folded, committed or not
	interval time.Duration    // between commits, as the leader has it in force
	slack    uint64           // steps that were in flight, whose commit proves nothing
	logs     map[string]int64 // sizes of the coordinators' logs, by path
}

// take makes a mark. The leader's own count of steps comes last, to be as near to
// the fault as can be.
func (r *rig) take(ctx context.Context, job *protocol.JobInfo, commits []commit, leader *proc.Node) (*mark, error) {
	m := &mark{job: job.ID, name: job.Name, steps: stepsOf(job), slack: 1, logs: make(map[string]int64)}
	m.interval = pace(commits)
	if job.Tasks > 1 {
		m.slack = uint64(len(r.cluster.Workers))
	}
	for _, n := range r.cluster.Coordinators {
		info, err := os.Stat(n.Log)
		if err != nil {
			return nil, err
		}
		m.logs[n.Log] = info.Size()
	}
	series, err := r.scrape(ctx, leader)
	if err != nil {
		return nil, err
	}
	if in := series[fmt.Sprintf("coppice_job_commit_interval_seconds{name=%q}", job.Name)]; in > 0 {
		m.interval = time.Duration(in * float64(time.Second))
	}
	m.step = max(commits[len(commits)-1].step, m.folded(series))
	return m, nil
}

// folded returns the steps that a leader has folded, as its metrics say; 0: they do
// not.
func (m *mark) folded(s proc.Series) uint64 {
	if m.slack > 1 {
		return 0 // a gather round
	}
	part := s[fmt.Sprintf("coppice_job_progress_ratio{name=%q}", m.name)]
	return uint64(math.Round(part * float64(m.steps)))
}

// scrape reads a coordinator's metrics, again until it answers.
func (r *rig) scrape(ctx context.Context, n *proc.Node) (proc.Series, error) {
	for {
		s, err := r.looks.Scrape(ctx, r.cluster.HTTP(n))
		if err == nil {
			return s, nil
		}
		if wait.For(ctx, lookPause) != nil {
			return nil, fmt.Errorf("metrics of %s: %w", n.Name, err)
		}
	}
}

// sighting is what a coordinator said of a job.
type sighting struct {
	at  time.Time // when the answer came
	job *protocol.JobInfo
}

const (
	// pollEvery is the time between two questions to one coordinator; three are
	// asked in turns, so that progress is seen within a third of it, or half.
	pollEvery = 10 * time.Millisecond
	// slowPoll is that time where more than fewPolls have no answer: a coordinator
	// that hangs must not hide that it knows more now, and a slow one gets only
	// the work that it can do.
	slowPoll = 25 * time.Millisecond
	fewPolls = 2
	// pollTimeout bounds one question, and maxPolls those that have no answer yet.
	pollTimeout = time.Second
	maxPolls    = int(pollTimeout / slowPoll)
)

// poll asks all coordinators for the job, again and again until ctx is done, then
// closes the channel.
func (r *rig) poll(ctx context.Context, id uint64) <-chan sighting {
	seen := make(chan sighting)
	var polls sync.WaitGroup
	for i, server := range r.servers {
		first := time.Duration(i) * pollEvery / time.Duration(len(r.servers))
		polls.Go(func() { r.pollOne(ctx, server, id, first, seen) })
	}
	go func() {
		polls.Wait()
		close(seen)
	}()
	return seen
}

// pollOne asks one coordinator, beginning after a wait.
func (r *rig) pollOne(ctx context.Context, server string, id uint64, pause time.Duration, seen chan<- sighting) {
	var polls sync.WaitGroup
	defer polls.Wait()
	open := make(chan struct{}, maxPolls)
	for wait.For(ctx, pause) == nil {
		if pause = pollEvery; len(open) > fewPolls {
			pause = slowPoll
		}
		select {
		case open <- struct{}{}:
		default:
			continue
		}
		polls.Go(func() {
			defer func() { <-open }()
			if j := r.look(ctx, server, id); j != nil {
				select {
				case seen <- sighting{time.Now(), j}:
				case <-ctx.Done():
				}
			}
		})
	}
}

// look asks one coordinator for a job once; nil: no answer.
func (r *rig) look(ctx context.Context, server string, id uint64) *protocol.JobInfo {
	status, text, err := r.get(ctx, server, fmt.Sprintf("/v1/jobs/%d", id))
	var j protocol.JobInfo
	if err != nil || status != http.StatusOK || json.Unmarshal(text, &j) != nil {
		return nil
	}
	return &j
}

// restart is where a leader took a job up again: what is committed beyond is new.
type restart struct{ epoch, round, step uint64 }

// restarted looks in the coordinators' logs for the last restart of the job since
// the mark.
func (m *mark) restarted() (last restart, ok bool, err error) {
	for path, from := range m.logs {
		b, err := os.ReadFile(path)
		if err != nil {
			return last, ok, err
		}
		for line := range strings.Lines(string(b[from:])) {
			at, mine := parseRestart(line, m.job)
			if mine && (!ok || at.epoch >= last.epoch) {
				last, ok = at, true
			}
		}
	}
	return last, ok, nil
}

// runs is the line of a leader's log that says where it takes a job up.
const runs = `msg="the job runs"`

// parseRestart reads such a line, if it is one and of the job.
func parseRestart(line string, job uint64) (at restart, ok bool) {
	if !strings.Contains(line, runs) {
		return at, false
	}
	values := make(map[string]uint64)
	for _, field := range strings.Fields(line) {
		if key, text, found := strings.Cut(field, "="); found {
			if v, err := strconv.ParseUint(text, 10, 64); err == nil {
				values[key] = v
			}
		}
	}
	return restart{values["epoch"], values["round"], values["step"]}, values["job"] == job
}

// recovery is how a cluster came back from a fault.
type recovery struct {
	after  time.Duration // until a commit of work that was begun after the fault
	redone uint64        // steps that had been folded before the fault and were again
}

// await waits for the first commit that can only have been made after the fault:
// one beyond where a leader took the job up again, or, where none did, beyond
// what was in flight.
func (r *rig) await(ctx context.Context, m *mark, from time.Time) (recovery, error) {
	ctx, cancel := context.WithCancel(ctx)
	seen := r.poll(ctx, m.job)
	defer func() {
		cancel()
		for range seen {
		}
	}()
	var rounds, step uint64
	for s := range seen {
		final := s.job.State.Final()
		if s.job.Rounds <= rounds && stepOf(s.job) <= step && !final {
			continue
		}
		rounds, step = s.job.Rounds, stepOf(s.job)
		at, again, err := m.restarted()
		if err != nil {
			return recovery{}, err
		}
		if final || again && (rounds > at.round || step > at.step+m.slack) || !again && step > m.step+m.slack {
			got := recovery{after: s.at.Sub(from)}
			if again && m.slack == 1 && m.step > at.step {
				got.redone = m.step - at.step
			}
			return got, nil
		}
	}
	return recovery{}, fmt.Errorf("the job %s committed no progress after step %d", m.name, m.step)
}

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

// pace returns the median time between commits; 0: there are fewer than two.
func pace(commits []commit) time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(commits); i++ {
		gaps = append(gaps, commits[i].at.Sub(commits[i-1].at))
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

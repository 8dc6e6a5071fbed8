package clusters_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// survivors is a cluster of three whose coordinators come and go under commands.
type survivors struct {
	t    *testing.T
	c    *proc.Cluster
	data string
}

// begin runs `coppice train` in the background, and returns once it is under way.
func (s *survivors) begin(name string, steps int, more ...string) <-chan cmdtest.Ended {
	end := make(chan cmdtest.Ended, 1)
	go func() {
		end <- cmdtest.Run(s.t, append(cmdtest.Train(s.data, steps, "--name", name, "--server", s.c.Servers()), more...)...)
	}()
	s.underWay(name)
	return end
}

func (s *survivors) underWay(name string) {
	s.t.Helper()
	testkit.Until(s.t, name+" to commit", func() bool {
		j, err := s.c.Client().Jobs().Get(s.t.Context(), name)
		return err == nil && j.Progress != nil && j.Progress.Step > 0 && j.State == protocol.Running
	})
}

func (s *survivors) job(name string) *protocol.JobInfo {
	s.t.Helper()
	j, err := s.c.Client().Jobs().Get(s.t.Context(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// killLeader kills the leader and returns what starts it again.
func (s *survivors) killLeader() (restart func()) {
	s.t.Helper()
	leader := cmdtest.KillLeader(s.t, s.c)
	return func() {
		s.t.Helper()
		if err := leader.Restart(); err != nil {
			s.t.Fatal(err)
		}
	}
}

// Commands do not notice that the leader dies, and notice with a note only that a
// majority is away; what they acknowledge holds.
func TestCommandsSurvive(t *testing.T) {
	testkit.WithoutRace(t)
	s := &survivors{t: t, data: cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 2000, 1), c: cmdtest.Start(t, 3, 2)}
	t.Setenv("COPPICE_SERVER", s.c.Servers())
	const steps = 800
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(s.data, steps, "--local")...))
	t.Run("pause and resume", func(t *testing.T) { s.t = t; s.pauseAndResume(want, steps) })
	t.Run("a majority away", func(t *testing.T) { s.t = t; s.majorityAway(want, steps) })
	t.Run("cancel", func(t *testing.T) { s.t = t; s.cancelMeanwhile() })
}

// pauseAndResume pauses a job, has the leader die twice, and lets it go on: it has
// the digest of a run that nobody disturbed, and what the watch tells never goes back.
func (s *survivors) pauseAndResume(want string, steps int) {
	t := s.t
	end := s.begin("paused", steps)
	var told progressLog
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var watching sync.WaitGroup
	watching.Go(func() { told.watch(ctx, s.c.Servers(), "paused") })
	var j protocol.JobInfo
	restart := s.killLeader()
	cmdtest.JSON(t, &j, "job", "pause", "paused") // while there is no leader
	if j.State != protocol.Paused || j.Rounds == 0 {
		t.Errorf("paused: %s at round %d", j.State, j.Rounds)
	}
	restart()
	s.killLeader()()
	kept := s.job("paused")
	if kept.State != protocol.Paused || kept.Rounds != j.Rounds {
		t.Errorf("after a change of leader it is %s at round %d, not paused at %d", kept.State, kept.Rounds, j.Rounds)
	}
	cmdtest.Works(t, "job", "resume", "paused")
	cmdtest.Works(t, "job", "resume", "paused")
	if got := cmdtest.ModelDigest(t, <-end); got != want {
		t.Errorf("digest %q, undisturbed %q", got, want)
	}
	watching.Wait()
	told.check(t)
}

// majorityAway kills two of three under a command, which says that it waits, and
// goes on when one is back.
func (s *survivors) majorityAway(want string, steps int) {
	t := s.t
	end := s.begin("lonely", steps)
	first, second := s.killLeader(), s.killLeader()
	select {
	case e := <-end:
		t.Fatalf("it did not wait: exit code %d: %s", e.Code, e.Stderr)
	case <-time.After(4 * time.Second): // the note comes after two
	}
	first()
	second()
	e := <-end
	if got := cmdtest.ModelDigest(t, e); got != want {
		t.Errorf("digest %q, undisturbed %q", got, want)
	}
	if !strings.Contains(e.Stderr, "waiting for the cluster") {
		t.Errorf("it does not say that it waits: %s", e.Stderr)
	}
}

// cancelMeanwhile cancels a job while its leader dies: once that is acknowledged the
// job is cancelled for good, has no model, and gives its name up.
func (s *survivors) cancelMeanwhile() {
	t := s.t
	end := s.begin("ended", 1_000_000_000)
	restart := s.killLeader()
	var j protocol.JobInfo
	cmdtest.JSON(t, &j, "job", "cancel", "ended")
	restart()
	if e := <-end; e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "was cancelled") {
		t.Errorf("train of a cancelled job: exit code %d: %s", e.Code, e.Stderr)
	}
	if got := s.job("ended"); j.State != protocol.Cancelled || got.State != protocol.Cancelled || len(got.Models) > 0 {
		t.Errorf("acknowledged as %s, it is %s with the models %v", j.State, got.State, got.Models)
	}
	if text := cmdtest.Works(t, "model", "list"); strings.Contains(text, "ended") {
		t.Errorf("a cancelled job has a model:\n%s", text)
	}
	again := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(s.data, 50, "--name", "ended")...))
	if got := s.job("ended"); got.ID == j.ID || got.Models[0].Digest != again {
		t.Errorf("the name still means job %d", got.ID)
	}
}

// progressLog is what a watch told.
type progressLog struct {
	mu    sync.Mutex
	lines []string
	steps []uint64
}

func (l *progressLog) watch(ctx context.Context, servers, job string) {
	cl, err := client.New(servers)
	if err != nil {
		panic(err)
	}
	defer cl.Close()
	cl.Jobs().Watch(ctx, job, func(j *protocol.JobInfo) {
		l.mu.Lock()
		defer l.mu.Unlock()
		b, _ := json.Marshal(j)
		l.lines = append(l.lines, string(b))
		if j.Progress != nil {
			l.steps = append(l.steps, j.Progress.Step)
		}
	})
}

func (l *progressLog) check(t *testing.T) {
	t.Helper()
	if len(l.steps) < 3 {
		t.Errorf("the watch told of %d steps only", len(l.steps))
	}
	for i := 1; i < len(l.steps); i++ {
		if l.steps[i] < l.steps[i-1] {
			t.Errorf("progress went back from step %d to %d", l.steps[i-1], l.steps[i])
		}
	}
	if last := l.lines[len(l.lines)-1]; !strings.Contains(last, `"state":"done"`) {
		t.Errorf("the last line is %.200s", last)
	}
}

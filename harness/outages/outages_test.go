package outages_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// go test ./harness/outages -run TestOutages -v -outages prints what each command says in each
// outage, as docs/design/failures.md has it.
var printOutages = flag.Bool("outages", false, "print what each command says in each outage")

// withinOutage bounds what a command that only reads takes in an outage. It is to answer
// within five seconds; a busy machine is given some more, less than three tries take.
const withinOutage = 10 * time.Second

// outageSite is a cluster that something is done to, with a dataset and the job "j" in it.
type outageSite struct {
	t *testing.T
	c *proc.Cluster
	// electing: on a busy machine another may not lead yet within the time of a command, which
	// then says so.
	electing bool
}

// said is what one command said.
type saidBack struct {
	cmdtest.Ended
	took time.Duration
}

// reading are the commands that only read; the last works wherever a coordinator answers.
var reading = []string{"cluster", "cluster members", "job list", "job show j", "dataset list", "model list",
	"cluster members --stale"}

// ask runs commands, all at once.
func (s *outageSite) ask(commands ...string) map[string]saidBack {
	s.t.Helper()
	back := make([]saidBack, len(commands))
	var asking sync.WaitGroup
	for i, command := range commands {
		asking.Go(func() {
			start := time.Now()
			back[i].Ended = cmdtest.RunContext(s.t.Context(), append(strings.Fields(command), "--server", s.c.Servers())...)
			back[i].took = time.Since(start)
		})
	}
	asking.Wait()
	all := make(map[string]saidBack)
	for i, command := range commands {
		all[command] = back[i]
	}
	return all
}

// reads runs the commands that only read, and checks that each ends in time, that those
// of fails say each of parts on one line and the others succeed, and that the last says
// the verdict.
func (s *outageSite) reads(outage string, fails []string, parts []string, verdict string) map[string]saidBack {
	s.t.Helper()
	back := s.ask(reading...)
	failing := strings.Join(fails, ",") + ","
	for _, command := range reading {
		b := back[command]
		s.print(outage, command, b)
		if b.took > withinOutage {
			s.t.Errorf("%s: coppice %s took %v", outage, command, b.took)
		}
		if s.electing && b.Code == cli.ExitFailed {
			s.says(outage, command, b.Stderr, s.addresses()...)
			continue
		}
		if fails := strings.Contains(failing, command+","); fails != (b.Code != cli.ExitOK) {
			s.t.Errorf("%s: coppice %s: exit code %d\n%s%s", outage, command, b.Code, b.Stdout, b.Stderr)
		} else if fails {
			s.says(outage, command, b.Stderr, parts...)
		}
	}
	text := back["cluster members --stale"]
	s.says(outage, "cluster members --stale", text.Stdout+text.Stderr, verdict)
	return back
}

func (s *outageSite) says(outage, command, text string, parts ...string) {
	s.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.t.Errorf("%s: coppice %s lacks %q:\n%s", outage, command, part, text)
		}
	}
}

// print prints what a command said, with the names of coordinators for their addresses.
func (s *outageSite) print(outage, command string, b saidBack) {
	if !*printOutages {
		return
	}
	text := strings.TrimSpace(b.Stdout + b.Stderr)
	for _, n := range s.c.Coordinators {
		text = strings.ReplaceAll(text, s.c.HTTP(n), strings.ToUpper(n.Name)+":7100")
	}
	s.t.Logf("\n=== %s: coppice %s (exit code %d, %.1f s)\n%s", outage, command, b.Code, b.took.Seconds(), text)
}

// fill imports a dataset and submits the job, which has no worker.
func (s *outageSite) fill() {
	s.t.Helper()
	data := cmdtest.ArtificialFile(s.t, s.t.TempDir(), "set.csv", 500, 1)
	cmdtest.Works(s.t, "job", "submit", "--data", data, "--name", "j", "--steps", "100000000", "--set", "patience=1000000",
		"--server", s.c.Servers())
}

// waits waits until the job waits for something.
func (s *outageSite) waits(reason protocol.WaitReason) {
	s.t.Helper()
	testkit.Until(s.t, "the job to wait for "+string(reason), func() bool {
		j, err := s.c.Client().Jobs().Get(s.t.Context(), "j")
		return err == nil && j.WaitingFor == reason
	})
}

func (s *outageSite) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// addresses lists where coordinators are, as errors name them.
func (s *outageSite) addresses() (all []string) {
	for _, n := range s.c.Coordinators {
		all = append(all, s.c.HTTP(n))
	}
	return all
}

// In each outage every command that only reads ends within seconds: with an answer that
// says what is waited for, or with an error that names each coordinator, what it said and
// the command that helps.
func TestOutages(t *testing.T) {
	testkit.WithoutRace(t)
	s := &outageSite{t: t, c: cmdtest.Start(t, 3, 0)}
	s.fill()
	s.waits(protocol.WaitNoWorker)
	back := s.reads("no worker", nil, nil, "leads, and all coordinators answer")
	s.says("no worker", "job list", back["job list"].Stdout, "running, no worker")
	s.says("no worker", "job show j", back["job show j"].Stdout,
		"no worker is connected; start a worker: coppice worker --join "+s.addresses()[0])

	old := cmdtest.Leader(t, s.c)
	s.must(old.Stop())
	s.electing = true
	s.reads("leader frozen", nil, nil, "no answer in 1s")
	s.electing = false
	s.must(old.Continue())

	cmdtest.Leader(t, s.c)
	for _, n := range s.c.Coordinators {
		s.must(n.Stop())
	}
	s.reads("all frozen", reading, s.addresses(), "no coordinator answers")
	for _, n := range s.c.Coordinators {
		s.must(n.Continue())
	}

	s.waits(protocol.WaitNoWorker)
	s.must(s.c.Coordinators[0].Kill())
	s.must(s.c.Coordinators[2].Kill())
	s.noMajority()
	s.must(s.c.Coordinators[1].Kill())
	s.reads("nobody", reading, append(s.addresses(), "connection refused"), "connection refused")
}

// noMajority checks what commands say without a majority: those that change something go
// on waiting for as long as they are told to, and say for whom.
func (s *outageSite) noMajority() {
	s.t.Helper()
	parts := append(s.addresses(), "no quorum: 1 of 3", "2 are needed", "connection refused", "has no leader",
		"coppice cluster members --stale")
	s.reads("no majority", reading[1:6], parts, "restart: ")
	now, later := "job pause j --wait 0", "job pause j --wait 8s"
	back := s.ask(now, later)
	s.print("no majority", now, back[now])
	s.print("no majority", later, back[later])
	for _, command := range []string{now, later} {
		if back[command].Code != cli.ExitFailed {
			s.t.Errorf("%s: exit code %d", command, back[command].Code)
		}
		s.says("no majority", command, back[command].Stderr, parts...)
	}
	if n := strings.Count(back[now].Stderr, "\n"); n != 1 {
		s.t.Errorf("%s says %d lines:\n%s", now, n, back[now].Stderr)
	}
	if n := strings.Count(back[later].Stderr, "waiting for the cluster: no quorum: 1 of 3"); n < 1 || n > 2 ||
		back[later].took < 7*time.Second {
		s.t.Errorf("%s says %d times that it waits, in %v:\n%s", later, n, back[later].took, back[later].Stderr)
	}
	s.interrupted()
}

// interrupted interrupts a command that waits: it ends at once with its exit code.
func (s *outageSite) interrupted() {
	s.t.Helper()
	cmd, _, stderr := cmdtest.Process(s.t, s.t.TempDir(), "job", "pause", "j", "--wait", "1h", "--server", s.c.Servers())
	said := &watched{buf: stderr}
	cmd.Stderr = said
	s.must(cmd.Start())
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("the command that is interrupted: %s", said.text())
		}
	})
	testkit.Until(s.t, "a command to say that it waits", func() bool { return said.has("waiting for the cluster") })
	s.must(cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != cli.ExitSignal+int(syscall.SIGINT) ||
		!said.has("coppice: interrupted\n") {
		s.t.Errorf("%v: %s", err, stderr)
	}
}

// watched is what a process writes, readable meanwhile.
type watched struct {
	mu  sync.Mutex
	buf *bytes.Buffer
}

// Write implements io.Writer.
func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(b)
}

func (w *watched) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (w *watched) has(text string) bool { return strings.Contains(w.text(), text) }

// Without NATS commands are served, and say that the workers cannot be reached.
func TestOutageOfNATS(t *testing.T) {
	testkit.WithoutRace(t)
	nats, args := cmdtest.StartNATS(t)
	s := &outageSite{t: t, c: cmdtest.StartWith(t, proc.Config{Coordinators: 3, Args: args})}
	s.fill()
	s.waits(protocol.WaitNoWorker)
	s.must(nats.Kill())
	s.waits(protocol.WaitNATS)
	back := s.reads("NATS down", nil, nil, "not connected to NATS")
	s.says("NATS down", "job list", back["job list"].Stdout, "running, no NATS")
	s.says("NATS down", "job show j", back["job show j"].Stdout, "the leader cannot reach the workers",
		"coppice cluster members")
	s.says("NATS down", "cluster", back["cluster"].Stdout, "not connected to NATS")
	data := cmdtest.ArtificialFile(t, t.TempDir(), "other.csv", 500, 2)
	one := "dataset import --wait 0 --data " + data
	b := s.ask(one)[one]
	s.print("NATS down", "dataset import --wait 0 --data FILE", b)
	if b.Code != cli.ExitFailed {
		t.Errorf("an import without NATS: exit code %d", b.Code)
	}
	s.says("NATS down", one, b.Stderr, s.addresses()...)
	s.says("NATS down", one, b.Stderr, "not connected to NATS")
}

// With a full disk commands that only read are served, and say so.
func TestOutageOfADisk(t *testing.T) {
	testkit.WithoutRace(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	small := filepath.Join(dir, "a")
	if err := errors.Join(os.Mkdir(small, 0o755), syscall.Mount("tmpfs", small, "tmpfs", 0, "size=100m")); err != nil {
		t.Skipf("a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, 0); err != nil {
			t.Error(err)
		}
	})
	s := &outageSite{t: t, c: cmdtest.StartWith(t, proc.Config{Dir: dir, Coordinators: 1})}
	s.fill()
	testkit.Until(t, "the full disk to be told", func() bool {
		s.must(fillUp(filepath.Join(small, "ballast"))) // again: the coordinator may have deleted a file meanwhile
		c, err := s.c.Client().Cluster(t.Context())
		return err == nil && strings.Contains(c.Problem, "the disk is full")
	})
	back := s.reads("disk full", nil, nil, "the disk is full")
	for _, command := range []string{"cluster", "cluster members"} {
		s.says("disk full", command, back[command].Stdout, "the disk is full")
	}
	data := cmdtest.ArtificialFile(t, t.TempDir(), "other.csv", 500, 2)
	one := "dataset import --data " + data
	b := s.ask(one)[one]
	s.print("disk full", "dataset import --data FILE", b)
	if b.Code != cli.ExitFailed {
		t.Errorf("an import on a full disk: exit code %d", b.Code)
	}
	s.says("disk full", one, b.Stderr, "nearly full", fmt.Sprintf("%d %%", 5))
}

// fillUp appends to a file until its disk is full.
func fillUp(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
			size /= 2
		} else if err != nil {
			return err
		}
	}
	return nil
}

// Without a worker `coppice train` says what it waits for, and goes on when one joins.
func TestTrainWaitsForAWorker(t *testing.T) {
	testkit.WithoutRace(t)
	c := cmdtest.Start(t, 1, 0)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 500, 1)
	want := cmdtest.ModelDigest(t, cmdtest.Run(t, cmdtest.Train(data, 50, "--local")...))
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), cmdtest.Train(data, 50, "--server", c.Servers())...)
	said := &watched{buf: stderr}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "train to say what it waits for", func() bool {
		return said.has("waits: no worker is connected; start a worker: coppice worker --join " + c.Servers())
	})
	if _, err := c.AddWorker(); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if got := cmdtest.ModelDigest(t, cmdtest.Ended{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(),
		Stderr: stderr.String()}); err != nil || got != want {
		t.Errorf("%v: digest %s, --local has %s", err, got, want)
	}
}

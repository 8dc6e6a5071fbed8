package clustercmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/coordinator"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Services outlive SIGHUP and say so, the last line of their logs says why they ended, and
// nobody but their user may read their files.
func TestServices(t *testing.T) {
	c := cmdtest.Start(t, 3, 1)
	cmdtest.Leader(t, c)
	for _, n := range slices.Concat(c.Workers, c.Coordinators) {
		if signal.Ignored(syscall.SIGHUP) { // these tests were started with nohup, and so were the services
			continue
		}
		// a cluster is ready without its third
		testkit.Until(t, n.Name+" to log", func() bool { return cmdtest.Read(t, n.Log) != "" })
		if err := n.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		testkit.Until(t, n.Name+" to ignore SIGHUP", func() bool {
			return strings.Contains(cmdtest.Read(t, n.Log), `msg="SIGHUP is ignored: there is nothing to reload"`)
		})
	}
	cmdtest.Leader(t, c)
	for _, n := range slices.Concat(c.Workers, c.Coordinators) {
		for path, mode := range modesIn(t, n.Dir) {
			if mode&0o077 != 0 {
				t.Errorf("%s has mode %v", path, mode)
			}
		}
	}
	if err := os.Chmod(c.Coordinators[0].Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i, n := range slices.Concat(c.Coordinators, c.Workers) { // the first ones have others that talk to them
		what := "coordinator"
		if i == len(c.Coordinators) {
			what = "worker"
		}
		if err := n.Quit(testkit.Context(t)); err != nil {
			t.Fatal(err)
		}
		if got, want := clitest.LastLine(t, n.Log), fmt.Sprintf(`level=INFO msg="the %s ends" reason="received SIGTERM"`,
			what); got != want || n.Err() != nil {
			t.Errorf("%s ended with %v, and its last line is %s", n.Name, n.Err(), got)
		}
	}
	if err := c.Coordinators[0].Restart(); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the warning of an open folder", func() bool {
		return strings.Contains(cmdtest.Read(t, c.Coordinators[0].Log), "(mode 0755); to prevent that: chmod 700 "+
			c.Coordinators[0].Dir)
	})
}

// modesIn returns the modes of what a folder has, and its own.
func modesIn(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	modes := make(map[string]fs.FileMode)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) { // a running service moves its files
				return nil
			}
			return err
		}
		if info, err := d.Info(); err == nil {
			modes[path] = info.Mode().Perm()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return modes
}

// A backup is its user's alone; other files are as the umask says.
func TestModesOfFiles(t *testing.T) {
	old := syscall.Umask(0o027)
	defer syscall.Umask(old)
	dir := t.TempDir()
	for _, test := range []struct {
		create func(path string) (*cli.File, error)
		mode   fs.FileMode
	}{{cli.Create, 0o640}, {cli.CreatePrivate, 0o600}} {
		path := filepath.Join(dir, "file")
		f, err := test.create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Commit(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != test.mode {
			t.Errorf("mode %v, want %v", info.Mode(), test.mode)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	var c BackupCmd
	c.File = filepath.Join(dir, "x")
	c.Server = []string{cmdtest.Start(t, 1, 0).Servers()}
	if err := c.Run(&cli.App{Ctx: testkit.Context(t), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer)}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(c.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a backup: %v, %v", info, err)
	}
}

// The last line of a log is the one that says why the service ended, whoever logs on
// meanwhile; its level tells a failure.
func TestLastLine(t *testing.T) {
	for _, test := range []struct {
		cause, err error
		code       int
		says       string
	}{
		{cli.Signalled{Signal: syscall.SIGTERM}, nil, cli.ExitOK,
			`level=INFO msg="the coordinator ends" reason="received SIGTERM"`},
		{cli.Signalled{Signal: syscall.SIGINT}, context.Canceled, cli.ExitOK, `reason="received SIGINT"`},
		{errStdin, nil, cli.ExitOK, `reason="stdin was closed"`},
		{nil, coordinator.ErrRemoved, cli.ExitFailed,
			`level=ERROR msg="the coordinator ends" error="this coordinator was removed from its cluster"`},
		{cli.Signalled{Signal: syscall.SIGTERM}, errors.New("the disk"), cli.ExitFailed,
			`level=ERROR msg="the coordinator ends" error="the disk"`},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var out bytes.Buffer
		v := (&ServeFlags{LogLevel: "info"}).Start(&cli.App{Ctx: ctx, Stderr: &out})
		var loggers sync.WaitGroup
		stop := make(chan struct{})
		for range 4 {
			loggers.Go(func() {
				log := slog.New(v.log.With("component", "raft").Handler().WithGroup("g"))
				for {
					select {
					case <-stop:
						return
					default:
						log.Error("failed to decode incoming command")
					}
				}
			})
		}
		if test.cause != nil {
			cancel(test.cause)
		}
		err := v.ended("coordinator", test.err)
		v.log.Error("too late")
		close(stop)
		loggers.Wait()
		cancel(nil)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.Contains(last, test.says) || (err == nil) != (test.code == cli.ExitOK) {
			t.Errorf("%v, %v: %v, and the last of %d lines is %s", test.cause, test.err, err, len(lines), last)
		}
	}
}

// Of a thousand bad messages a second the log has twenty lines a minute, whichever logger writes
// them, and says how many it left out; other lines, and other texts, are all there.
func TestSeldom(t *testing.T) {
	var out bytes.Buffer
	h := newServiceLog(slog.NewTextHandler(&out, nil), true)
	loggers := []slog.Handler{h, h.WithAttrs([]slog.Attr{slog.String("worker", "w")}), h.WithGroup("g")}
	put := func(second, i int, level slog.Level, text string) {
		r := slog.NewRecord(time.Unix(int64(second), 0), level, text, 0)
		r.AddAttrs(slog.Int("i", i))
		if err := loggers[i%len(loggers)].Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for second := range 120 {
		for i := range 1000 {
			put(second, i, slog.LevelWarn, "a message was dropped")
		}
		put(second, 0, slog.LevelInfo, "joined")
		put(second, 0, slog.LevelError, "failed")
		if second%10 == 0 {
			put(second, 0, slog.LevelWarn, "refused")
		}
	}
	for text, want := range map[string]int{"a message was dropped": 2 * warnLines, "joined": 120, "failed": 120,
		"refused": 12, "omitted_before=59980": 1, "omitted_before": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
}

// Ever new texts take no memory without bound, and are all written.
func TestSeldomTexts(t *testing.T) {
	c := &warnCounts{texts: make(map[string]*warnCount)}
	for i := range 10 * warnTexts {
		if written, _ := c.add(fmt.Sprint(i), time.Unix(0, 0)); !written {
			t.Fatalf("text %d is not written", i)
		}
	}
	if n := len(c.texts); n > warnTexts {
		t.Errorf("%d texts are kept", n)
	}
}

// TestNATSIsNoCoordinator: a command fails at once, with an error of one line, if its server is a NATS server.
func TestNATSIsNoCoordinator(t *testing.T) {
	address := testkit.FreeAddress(t)
	cmd, _, _ := cmdtest.Process(t, t.TempDir(), "nats", "--listen", address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	testkit.Until(t, "NATS to listen", func() bool { return cmdtest.Listens(address) })
	start := time.Now()
	e := cmdtest.Run(t, "job", "list", "--server", address)
	if e.Code != cli.ExitFailed || strings.Count(e.Stderr, "\n") != 1 ||
		!strings.Contains(e.Stderr, address+" is not a coordinator: a NATS server answers there") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

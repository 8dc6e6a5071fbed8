package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// listenAsManager returns a socket for NOTIFY_SOCKET and a function that returns the next state that was told.
func listenAsManager(t *testing.T) (socket string, next func() string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "n") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return socket, func() string {
		t.Helper()
		if err := l.SetReadDeadline(time.Now().Add(testkit.Limit)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
}

// A coordinator and a worker say that they are ready, that they work, and that they stop.
func TestServicesTellTheirManager(t *testing.T) {
	dir := t.TempDir()
	start := func(args ...string) (next func() string, end func()) {
		socket, next := listenAsManager(t)
		cmd, _, stderr := cmdtest.Process(t, dir, args...)
		cmd.Env = append(cmd.Env, "NOTIFY_SOCKET="+socket, "WATCHDOG_USEC=300000", "WATCHDOG_PID=")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		got := next()
		for got == "WATCHDOG=1" && args[0] == "worker" { // it may look for its cluster for long
			got = next()
		}
		if got != "READY=1" {
			t.Fatalf("%s tells %q first", args[0], got)
		}
		for range 3 {
			if got := next(); got != "WATCHDOG=1" {
				t.Errorf("%s tells %q instead of a sign of life", args[0], got)
			}
		}
		return next, func() {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			said := next()
			for said == "WATCHDOG=1" {
				said = next()
			}
			if err := cmd.Wait(); err != nil || said != "STOPPING=1" {
				t.Errorf("%s tells %q at its end: %v\n%s", args[0], said, err, stderr)
			}
		}
	}
	address := testkit.FreeAddress(t)
	next, stopCoordinator := start("coordinator", "--dir", filepath.Join(dir, "c"), "--peers", "a="+address)
	_, stopWorker := start("worker", "--join", address, "--dir", filepath.Join(dir, "w"))
	stopWorker()
	if got := next(); got != "WATCHDOG=1" {
		t.Errorf("a coordinator without workers tells %q", got)
	}
	stopCoordinator()
}

// While its check fails or does not return, a process gives no sign of life.
func TestNoSignOfLife(t *testing.T) {
	socket, next := listenAsManager(t)
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", fmt.Sprint(os.Getpid()))
	var log strings.Builder
	m, err := openManager(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer m.conn.Close()
	if left := os.Getenv("NOTIFY_SOCKET") + os.Getenv("WATCHDOG_USEC") + os.Getenv("WATCHDOG_PID"); left != "" {
		t.Errorf("other processes get %s", left)
	}
	checks := 0
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		m.watch(ctx, func(ctx context.Context) error {
			switch checks++; checks {
			case 1:
				return errors.New("the loop is stuck")
			case 2:
				<-ctx.Done()
				return ctx.Err()
			case 3:
				m.tell("third") // the others said nothing
				return nil
			}
			cancel()
			return ctx.Err()
		})
	})
	m.stop()
	m.stop()
	m.tell("last")
	for _, want := range []string{"third", "WATCHDOG=1", "STOPPING=1", "last"} {
		if got := next(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if n := strings.Count(log.String(), "this process does not work"); n != 2 ||
		!strings.Contains(log.String(), "the loop is stuck") {
		t.Errorf("the log has\n%s", log.String())
	}
}

// A wrong environment is refused, and a watchdog of another process is not served.
func TestManagerEnvironment(t *testing.T) {
	socket, _ := listenAsManager(t)
	for _, test := range []struct{ socket, period, pid, says string }{
		{"", "1", "", ""},
		{socket, "1000000", "1", ""},
		{socket, "soon", "", "WATCHDOG_USEC=soon: want a number of microseconds"},
		{"vsock:2:3", "", "", "NOTIFY_SOCKET=vsock:2:3: want a path"},
		{socket + "x", "", "", "NOTIFY_SOCKET=" + socket + "x: "},
	} {
		t.Setenv("NOTIFY_SOCKET", test.socket)
		t.Setenv("WATCHDOG_USEC", test.period)
		t.Setenv("WATCHDOG_PID", test.pid)
		m, err := openManager(slog.New(slog.DiscardHandler))
		if test.says == "" {
			if err != nil || m.patience != 0 {
				t.Errorf("%+v: %v, %v", test, m, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%+v: %v", test, err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "vsock:2:3")
	cmd, _, stderr := cmdtest.Process(t, t.TempDir(), "worker", "--join", "127.0.0.1:1", "--dir", t.TempDir())
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != cli.ExitFailed ||
		!strings.Contains(stderr.String(), "NOTIFY_SOCKET=vsock") {
		t.Errorf("%v: %s", err, stderr)
	}
}

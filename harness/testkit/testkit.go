// Package testkit has what tests of many packages need: waiting with a limit, files that
// may not be there, and free ports. It imports nothing of Coppice, so that every package's
// tests can use it; datatest, natstest and storetest beside it start the real parts.
//
// Only tests import these packages: internal/lint holds that.
package testkit

import (
	"context"
	"errors"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/harness/freeport"
)

// Limit bounds every wait. A test that reaches it fails; it is far beyond what a wait takes
// on a busy machine with the race detector on.
const Limit = 5 * time.Minute

// The pauses between two looks at a condition: short at first, so that a test does not wait
// for nothing, then longer, so that it leaves the processor to what it waits for.
const (
	shortestPause = time.Millisecond
	longestPause  = 20 * time.Millisecond
	longestShare  = 250 * time.Millisecond // after a condition that takes long
)

// Large skips a test that computes for many seconds on a large dataset, unless COPPICE_TEST_LARGE is set. A smaller
// dataset goes through the same code in another test.
func Large(t testing.TB) {
	t.Helper()
	if os.Getenv("COPPICE_TEST_LARGE") == "" {
		t.Skip("it computes for many seconds; COPPICE_TEST_LARGE is not set")
	}
}

// Until waits for a condition that nothing notifies of; what names it. If a look at
// the condition takes long, as a command does, the pause is twice that time: other tests need the processor.
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	pause, end := shortestPause, time.Now().Add(Limit)
	for {
		began := time.Now()
		if done() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, Limit)
		}
		<-time.After(max(pause, min(2*time.Since(began), longestShare)))
		pause = min(pause*5/4, longestPause)
	}
}

// AtOnce lets n tests that call t.Parallel run at once, even if there are fewer processors, because they wait for most
// of their time. It is called before the tests run. If the command line has -parallel, AtOnce changes nothing.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil { // m.Run parses the command line afterwards
		panic(err)
	}
}

// WithoutRace skips a test if the race detector is on: one goroutine computes in it, other tests run its goroutines
// with the detector, it takes too long, or it measures memory. Without the detector, every test runs.
func WithoutRace(t testing.TB) {
	t.Helper()
	if Race {
		t.Skip("the race detector finds nothing in it, and makes it several times as long")
	}
}

// Receive returns what comes from a channel next; what names it. From a closed channel comes
// the zero value.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	timer := time.NewTimer(Limit)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("%s: not within %v", what, Limit)
		panic("unreachable")
	}
}

// Context returns a context that ends after Limit or, other than that of t, with the test's
// last cleanups: what is closed there can use it.
func Context(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), Limit)
	t.Cleanup(cancel)
	return ctx
}

// Shared returns the path of a file or folder of "shared", a folder beside the checkout with
// real data sets and golden files, or skips the test where there is none.
func Shared(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "shared", "data")); err == nil {
			return filepath.Join(dir, "shared", filepath.FromSlash(name))
		}
		if dir == filepath.Dir(dir) {
			t.Skipf("no parent folder has the folder shared/data: %s is not at hand", name)
		}
		dir = filepath.Dir(dir)
	}
}

// RemoveInUse removes a file or a folder in which a running process may make files. os.RemoveAll fails if a file is
// made while it runs. RemoveInUse therefore moves the path into a temporary folder first, which the process does not
// know.
func RemoveInUse(path string) error {
	temporary, err := os.MkdirTemp("", "removed-*")
	if err != nil {
		return err
	}
	err = os.Rename(path, filepath.Join(temporary, "removed"))
	return errors.Join(err, os.RemoveAll(temporary))
}

// Listen listens on a port that FreeAddress returns: after it is closed, no other process takes
// the port before the test listens again. The caller closes the listener, or hands it to
// what does.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// FreeAddress returns an address of loopback on which nobody listens now.
func FreeAddress(t testing.TB) string {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// ReadOnly makes a folder read-only until writable is called, or the test ends. Root may
// write wherever the file system can be written, so for root it is mounted read-only; the
// test is skipped if that is impossible.
func ReadOnly(t testing.TB, dir string) (writable func()) {
	t.Helper()
	if os.Getuid() != 0 {
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		writable = func() { os.Chmod(dir, 0o700) }
		t.Cleanup(writable)
		return writable
	}
	mount := func(args ...string) error { return exec.Command("mount", args...).Run() }
	if err := mount("--bind", dir, dir); err != nil {
		t.Skipf("a folder cannot be made read-only for root: %v", err)
	}
	mounted := true
	writable = func() {
		if mounted {
			mounted = false
			if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
				t.Errorf("umount: %v: %s", err, out)
			}
		}
	}
	t.Cleanup(writable)
	if err := mount("-o", "remount,ro,bind", dir); err != nil {
		t.Skipf("a folder cannot be made read-only for root: %v", err)
	}
	return writable
}

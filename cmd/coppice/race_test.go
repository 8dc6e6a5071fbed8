//go:build race

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// slowdown is about how many times longer a step takes with the race detector. A job that
// must last while something happens to it has as many fewer of them.
const slowdown = 4

// raced skips a test that takes minutes, or measures memory, where the race detector is on:
// without it go test runs it.
func raced(t *testing.T) {
	t.Helper()
	t.Skip("it takes too long, or too much memory, with the race detector")
}

// raceFree runs the tests, and fails where one of the processes that they started had a data
// race. Each writes its reports to a file: a process that is killed has no exit code, and few
// tests read what a process prints. No process sleeps for a second before it ends, as the race
// detector would have it.
func raceFree(run func() int) (code int) {
	dir, err := os.MkdirTemp("", "coppice-races-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitFailed
	}
	defer os.RemoveAll(dir)
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0 log_path="+filepath.Join(dir, "report"))
	code = run()
	reports, _ := filepath.Glob(filepath.Join(dir, "report.*"))
	for _, path := range reports {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(os.Stderr, "a process of a test had a data race:\n%s\n", text)
		code = exitFailed
	}
	return code
}

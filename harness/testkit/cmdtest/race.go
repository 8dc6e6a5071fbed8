//go:build race

package cmdtest

import (
	"fmt"
	"os"
	"path/filepath"
)

// raceFree runs the tests, and fails if one of the processes that they started had a data race. Each process writes its
// reports to a file: a process that is killed has no exit code, and few tests read what a process prints. With the
// option atexit_sleep_ms, no process sleeps for a second before it ends.
func raceFree(run func() int) (code int) {
	dir, err := os.MkdirTemp("", "coppice-races-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("GORACE", os.Getenv("GORACE")+" atexit_sleep_ms=0 log_path="+filepath.Join(dir, "report"))
	code = run()
	reports, _ := filepath.Glob(filepath.Join(dir, "report.*"))
	for _, path := range reports {
		text, _ := os.ReadFile(path)
		fmt.Fprintf(os.Stderr, "a process of a test had a data race:\n%s\n", text)
		code = 1
	}
	return code
}

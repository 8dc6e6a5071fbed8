package commands

import (
	"context"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestJobListPages: job list says how to list the jobs that follow, until none follows.
func TestJobListPages(t *testing.T) {
	dir, address := t.TempDir(), testkit.FreeAddress(t)
	ctx, cancel := context.WithCancel(testkit.Context(t))
	ends := make(chan cmdtest.Ended, 1)
	go func() {
		ends <- cmdtest.RunContext(ctx, "coordinator", "--dir", filepath.Join(dir, "a"), "--peers", "a="+address)
	}()
	defer func() { cancel(); testkit.Receive(t, "the end of the coordinator", ends) }()
	data := cmdtest.ArtificialFile(t, dir, "set.csv", 60, 1)
	for seed, name := range []string{"a", "b", "c"} {
		cmdtest.Works(t, "job", "submit", "--wait", "5m", "--name", name, "--data", data, "--algorithm", "sa-bfgs", "--seed", strconv.Itoa(seed), "--server", address)
	}
	list := []string{"job", "list", "--server", address, "--sort", "name", "--limit", "2"}
	e := cmdtest.Run(t, list...)
	next := regexp.MustCompile(`the first 2 of 3 jobs, sorted by name; --after (\d+) lists more`).FindStringSubmatch(e.Stderr)
	if next == nil {
		t.Fatalf("job list notes %q", e.Stderr)
	}
	var rest []protocol.JobInfo
	if cmdtest.JSON(t, &rest, append(list, "--after", next[1])...); len(rest) != 1 || rest[0].Name != "c" {
		t.Errorf("then follow %+v", rest)
	}
	if e := cmdtest.Run(t, append(list, "--after", "999")...); e.Code != ExitFailed || !strings.Contains(e.Stderr, "job 999") {
		t.Errorf("after an unknown job: exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, append(list, "--after", "x")...); e.Code != ExitUsage {
		t.Errorf("after a text: exit code %d: %s", e.Code, e.Stderr)
	}
}

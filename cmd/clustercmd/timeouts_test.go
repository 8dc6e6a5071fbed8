package clustercmd

import (
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// The ladder is printed without starting anything, moves with the heartbeat, and is
// refused where it does not fit together.
func TestPrintTimeouts(t *testing.T) {
	text := cmdtest.Works(t, "coordinator", "--print-timeouts")
	for _, name := range []string{"heartbeat", "raft-election", "nats-ping", "worker-dead", "nats-lost"} {
		if !strings.Contains(text, name) {
			t.Errorf("no %s in\n%s", name, text)
		}
	}
	read := func(args ...string) map[string]rung {
		var list []rung
		cmdtest.JSON(t, &list, append([]string{"coordinator", "--print-timeouts"}, args...)...)
		rungs := make(map[string]rung)
		for i, r := range list {
			for _, below := range r.Above {
				if !slices.ContainsFunc(list[:i], func(b rung) bool { return b.Name == below && b.MS < r.MS }) {
					t.Errorf("%s, %v ms, is not above %s", r.Name, r.MS, below)
				}
			}
			rungs[r.Name] = r
		}
		return rungs
	}
	one, two := read(), read("--heartbeat", "200ms")
	for _, name := range []string{"heartbeat", "raft-election", "raft-lease", "worker-dead", "unit-slow"} {
		if two[name].MS != 2*one[name].MS {
			t.Errorf("%s is %v ms at twice the heartbeat, %v ms before", name, two[name].MS, one[name].MS)
		}
	}
	if got := read("--election-timeout", "350ms")["raft-election"].MS; got != 350 {
		t.Errorf("raft-election is %v ms, 350 were given", got)
	}
	for _, args := range [][]string{
		{"--heartbeat", "1ms"}, {"--heartbeat", "2s"}, {"--election-timeout", "50ms"}, {"--election-timeout", "1m"},
	} {
		e := cmdtest.Run(t, append([]string{"coordinator", "--dir", t.TempDir()}, args...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, args[0]) {
			t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

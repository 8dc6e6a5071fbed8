package benchcmd

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/chaos"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

func TestChaosUsage(t *testing.T) {
	testkit.WithoutRace(t)
	for args, says := range map[string]string{
		"--faults earthquake":              "leader-stop", // it lists those that there are
		"--rounds 0":                       "rounds",
		"--workers 1":                      "workers",
		"--hold=-1s":                       "--hold -1s",
		"--algorithm rf":                   "structrf",
		"--faults worker-kill,worker-kill": "twice",
		"--network rtt=50":                 "--network: rtt=50: want a time",
		"--network delay=5ms":              `unknown setting "delay": want rtt, jitter, loss`,
		"--heartbeat 5s":                   "got 5s",
	} {
		e := cmdtest.Run(t, append([]string{"chaos"}, strings.Fields(args)...)...)
		if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, says) || strings.Count(e.Stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", args, e.Code, e.Stderr)
		}
	}
}

// What a failure prints is the command that it was.
func TestChaosReplay(t *testing.T) {
	c := ChaosCmd{
		Seed: 3, Rounds: 9, Workers: 4, Faults: []string{"all-kill", "latency"}, Algorithm: "ldlf", Hold: 10 * time.Second,
		MaxStall: chaos.DefaultStall, Small: true,
		Network: "rtt=50ms,loss=1%", TLS: true, Heartbeat: 200 * time.Millisecond,
	}
	if got, want := c.replay(), "coppice chaos --seed 3 --rounds 9 --workers 4 --faults all-kill,latency --algorithm "+
		"ldlf --hold 10s --network rtt=50ms,loss=1% --tls --heartbeat 200ms --small"; got != want {
		t.Errorf("got %q", got)
	}
	var again ChaosCmd
	if _, err := kong.Must(&again).Parse(strings.Fields(c.replay())[2:]); err != nil || again.replay() != c.replay() {
		t.Errorf("%q, %v", again.replay(), err)
	}
}

package clusters_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestLinearBaselineOnCluster: a cluster of three workers, also if the leader is killed, has the linear baseline of one
// thread of this process.
func TestLinearBaselineOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 26_000, 1)
	c := cmdtest.Start(t, 3, 3)
	const steps = 600
	trained := func(e cmdtest.Ended) (r cmdtest.Trained) {
		t.Helper()
		if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
			t.Fatalf("%v: %s", err, e.Stderr)
		}
		return r
	}
	want := trained(cmdtest.Run(t, cmdtest.Train(data, steps, "--local", "--threads", "1")...))
	if want.Linear == nil || want.Linear.Samples != 18_720 || want.Linear.Better {
		t.Fatalf("linear baseline %+v, K-L of the model %v", want.Linear, want.Measures[0].Mean)
	}
	for name, disturb := range map[string]func(){"quiet": func() {}, "killed-leader": func() {
		cmdtest.KillLeader(t, c)
	}} {
		r := trained(cmdtest.MidWay(t, c, name, cmdtest.Train(data, steps), disturb))
		if r.ModelDigest != want.ModelDigest {
			t.Errorf("%s: digest %s, want %s", name, r.ModelDigest, want.ModelDigest)
		}
		if diff := cmp.Diff(want.Linear, r.Linear); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		const says = "Linear baseline: K-L "
		if text := cmdtest.Works(t, "job", "show", name, "--server", c.Servers()); !strings.Contains(text, says) ||
			strings.Contains(text, "warning") {
			t.Errorf("%s: job show does not say %q, or warns:\n%s", name, says, text)
		}
	}
}

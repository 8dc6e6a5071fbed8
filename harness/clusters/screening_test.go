package clusters_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestScreeningOnCluster: on a cluster, train without an algorithm has the screening of this process, and the model of
// a training without it; algorithm best has the model of this process.
func TestScreeningOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	data := cmdtest.ArtificialFile(t, t.TempDir(), "set.csv", 400, 1)
	c := cmdtest.Start(t, 1, 2)
	trained := func(args ...string) (r results.Result, stderr string) {
		t.Helper()
		e := cmdtest.Run(t, append([]string{"train", "--data", data, "--test-fraction", "0.2", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
			t.Fatalf("%v: %s", err, e.Stderr)
		}
		return r, e.Stderr
	}
	cluster := func(name string, args ...string) (results.Result, string) {
		t.Helper()
		return trained(append([]string{"--server", c.Servers(), "--name", name}, args...)...)
	}
	want, says := trained("--local")
	got, text := cluster("screened")
	if want.Screening == nil || !cmp.Equal(got.Screening, want.Screening) || got.ModelDigest != want.ModelDigest {
		t.Errorf("screening %+v, digest %s; want %+v and %s", got.Screening, got.ModelDigest, want.Screening, want.ModelDigest)
	}
	const line = "screening on "
	if !strings.Contains(says, line) || !strings.Contains(text, line) {
		t.Errorf("stderr does not say %q:\n%s\n%s", line, says, text)
	}
	if bare, text := cluster("bare", "--no-screen"); bare.Screening != nil || strings.Contains(text, line) ||
		bare.ModelDigest != want.ModelDigest {
		t.Errorf("without a screening: %+v, digest %s, want %s; stderr %s", bare.Screening, bare.ModelDigest, want.ModelDigest,
			text)
	}
	best, _ := trained("--local", "--algorithm", "best", "--budget", "3")
	if got, text := cluster("best", "--algorithm", "best", "--budget", "3"); got.ModelDigest != best.ModelDigest ||
		got.Screening != nil || strings.Contains(text, line) {
		t.Errorf("best: digest %s, want %s", got.ModelDigest, best.ModelDigest)
	}
}

package clusters_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestValidationFileOnCluster: with a file of validation samples, a cluster and this process train the same model, also
// after a worker is killed half-way, and of a dataset that was imported with both files. The cluster verifies it.
func TestValidationFileOnCluster(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, own := cmdtest.ArtificialFile(t, dir, "set.csv", 1000, 1), cmdtest.ArtificialFile(t, dir, "own.csv", 300, 2)
	c := cmdtest.Start(t, 1, 2)
	trained := func(args ...string) (r results.Result) {
		t.Helper()
		e := cmdtest.Run(t, append([]string{"train", "--test-fraction", "0.2", "-o", "json"}, args...)...)
		if err := json.Unmarshal([]byte(e.Stdout), &r); err != nil {
			t.Fatalf("%v: %s", err, e.Stderr)
		}
		return r
	}
	with := []string{"--data", data, "--validation", own}
	there := func(name string) []string { return []string{"--server", c.Servers(), "--name", name} }
	model := dir + "/m.model"
	want := trained(append(with, "--local", "--model-out", model)...)
	if want.Screening == nil || want.Screening.Samples != 300 || want.Rows.Validation != 300 || want.Rows.Test != 200 {
		t.Fatalf("samples %+v, screening %+v", want.Rows, want.Screening)
	}
	got := trained(append(with, there("both")...)...)
	if got.ModelDigest != want.ModelDigest || got.Screening == nil || got.Screening.KL != want.Screening.KL {
		t.Errorf("digest %s, screening %+v; in this process %s, %+v", got.ModelDigest, got.Screening, want.ModelDigest,
			want.Screening)
	}
	var set struct {
		Samples    int `json:"samples"`
		Validation int `json:"validation_samples"`
	}
	cmdtest.JSON(t, &set, "dataset", "import", "--data", data, "--validation", own, "--name", "pair", "--server",
		c.Servers())
	if set.Samples != 1300 || set.Validation != 300 {
		t.Errorf("imported %+v", set)
	}
	if got := trained(append(there("imported"), "--dataset", "pair")...); got.ModelDigest != want.ModelDigest {
		t.Errorf("of the imported dataset, the digest is %s, want %s", got.ModelDigest, want.ModelDigest)
	}
	best := []string{"--algorithm", "best", "--budget", "10"}
	if here, there := trained(append(append(with, "--local"), best...)...), trained(append(append(with, there("best")...),
		best...)...); here.ModelDigest != there.ModelDigest || there.Mixture.Rows != 300 {
		t.Errorf("best: digest %s by %d samples, in this process %s", there.ModelDigest, there.Mixture.Rows, here.ModelDigest)
	}
	long := cmdtest.Train(data, 800, "--validation", own)
	digest := cmdtest.ModelDigest(t, cmdtest.Run(t, append(long, "--local")...))
	e := cmdtest.MidWay(t, c, "killed", long, func() { cmdtest.Kill(t, c.Workers[1]) })
	if got := cmdtest.ModelDigest(t, e); got != digest {
		t.Errorf("with a killed worker, the digest is %s, in this process %s", got, digest)
	}
	var v struct{ Verdict string }
	cmdtest.JSON(t, &v, "model", "verify", model, "--data", data, "--validation", own, "--server", c.Servers())
	if v.Verdict != "verified" {
		t.Errorf("verify: %q", v.Verdict)
	}
}

package cmdtest

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/chaos"
)

// Chaos injects each fault once into a small cluster of coppice chaos, which trains ldlf on two workers, and returns
// the report. tmp is the folder for temporary files. The cluster must recover from each fault. If this machine cannot
// inject a fault, the test is skipped.
func Chaos(t *testing.T, tmp string, faults []string, more ...string) *chaos.Report {
	t.Helper()
	args := []string{"chaos", "--small", "--workers", "2", "--algorithm", "ldlf", "--rounds", "1", "-o", "json",
		"--faults", strings.Join(faults, ",")}
	cmd, stdout, stderr := Process(t, tmp, append(args, more...)...)
	err := cmd.Run()
	if strings.Contains(stderr.String(), "cannot be injected here") {
		t.Skip(stderr)
	}
	if err != nil {
		t.Fatalf("%v\n%s%s", err, stdout, stderr)
	}
	var r chaos.Report
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Strikes {
		if !s.Recovered {
			t.Errorf("%+v", s)
		}
	}
	if len(r.Strikes) != len(faults) || r.Digests == 0 {
		t.Errorf("%d faults, %d digests", len(r.Strikes), r.Digests)
	}
	return &r
}

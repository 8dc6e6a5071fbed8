package main

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
)

// TestErrorsNameKeys: an error about the file of a spec names keys, and works if they are followed.
func TestErrorsNameKeys(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	write(t, dir, "marks.tsv", "income\tage\tlabel_x\tlabel_y\n12,345\t31\t0\t1\n999\t40\t1\t0\n1,024\t55\t0\t1\n870\t22\t1\t0\n")
	run := func(keys string) ended {
		spec := write(t, dir, "e.yaml", "name: e\nmethods: [aa-knn]\nfolds: 2\ndatasets:\n  - {file: marks.tsv"+keys+"}\n")
		return coppice(t, "experiment", "run", spec, "--local", "--yes")
	}
	r := run("")
	for _, says := range []string{`thousands: "," reads 12345`, `decimal: "," reads 12.345`} {
		if r.code != exitUsage || !strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "--thousands") {
			t.Errorf("exit code %d: %s", r.code, r.stderr)
		}
	}
	for _, keys := range []string{`, thousands: ","`, `, decimal: ","`} {
		if r := run(keys); r.code != 0 {
			t.Errorf("%s: exit code %d: %s", keys, r.code, r.stderr)
		}
	}
}

package experimentcmd

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestErrorsNameKeys: an error about the file of a spec names keys, and works if they are followed.
func TestErrorsNameKeys(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	cmdtest.Write(t, dir, "marks.tsv",
		"income\tage\tlabel_x\tlabel_y\n12,345\t31\t0\t1\n999\t40\t1\t0\n1,024\t55\t0\t1\n870\t22\t1\t0\n")
	run := func(keys string) cmdtest.Ended {
		spec := cmdtest.Write(t, dir, "e.yaml", "name: e\nmethods: [aa-knn]\nfolds: 2\ndatasets:\n  - {file: marks.tsv"+keys+
			"}\n")
		return cmdtest.Run(t, "experiment", "run", spec, "--local", "--yes")
	}
	r := run("")
	for _, says := range []string{`thousands: "," reads 12345`, `decimal: "," reads 12.345`} {
		if r.Code != cli.ExitUsage || !strings.Contains(r.Stderr, says) || strings.Contains(r.Stderr, "--thousands") {
			t.Errorf("exit code %d: %s", r.Code, r.Stderr)
		}
	}
	for _, keys := range []string{`, thousands: ","`, `, decimal: ","`} {
		if r := run(keys); r.Code != 0 {
			t.Errorf("%s: exit code %d: %s", keys, r.Code, r.Stderr)
		}
	}
}

package traincmd

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// The error of a fold that cannot train names the fold, or the group that it tests.
func TestFoldFailures(t *testing.T) {
	testkit.WithoutRace(t)
	data := "x0,x1,person,label_a,label_b\n1,2,ada,0.5,0.5\n2,3,ada,0.5,0.5\n3,5,ada,0.5,0.5\n4,1,bob,0.5,0.5\n"
	files := map[string]string{"x.csv": data, "split.csv": "row,fold\n0,1\n1,1\n2,1\n3,0\n", "overlap.csv": "row,first,second\n0,0,1\n1,0,1\n2,0,1\n3,1,0\n"}
	for _, test := range []struct {
		args string
		says []string
	}{
		{"--split @/split.csv", []string{"fold 1: ", "only 1 training sample"}},
		{"--split @/overlap.csv", []string{"fold 1: ", "only 1 training sample"}},
		{"--folds groups --groups person", []string{`without the group "ada": `, "only 1 training sample"}},
	} {
		t.Run(strings.Fields(test.args)[1], func(t *testing.T) {
			args := "train --local --data @/x.csv --algorithm aa-knn --set k=3 " + test.args
			if !strings.Contains(args, "groups") {
				args += " --drop person"
			}
			cmdtest.Refused(t, files, args, cli.ExitUsage, test.says)
		})
	}
}

package commands

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/matfile/mattest"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// npyFile encodes a matrix of ones over columns as a .npy file.
func npyFile(t *testing.T, rows, cols int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := npy.NewWriter[float32](&b, rows, cols)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, cols)
	for i := range row {
		row[i] = 1 / float32(cols)
	}
	for range rows {
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// matrix is a variable of a MATLAB file, by columns.
type matrix struct {
	name       string
	rows, cols int32
	values     []float64
}

// matFile encodes variables as a MATLAB file.
func matFile(variables ...matrix) string {
	var f mattest.File
	for _, v := range variables {
		f.AddDoubles(v.name, v.rows, v.cols, v.values...)
	}
	return string(f.Bytes())
}

// Each wrong input gets one line that says what is wrong and where, the exit code
// 1 (bad data) or 2 (wrong usage), and leaves nothing behind.
func TestRefusals(t *testing.T) {
	good := matFile(matrix{name: "features", rows: 4, cols: 2, values: []float64{1, 2, 3, 4, 5, 6, 7, 8}},
		matrix{name: "labels", rows: 4, cols: 2, values: []float64{.5, .5, .5, .5, .5, .5, .5, .5}})
	csv := func(rows ...string) string { return "x0,x1,label_a,label_b\n" + strings.Join(rows, "\n") + "\n" }
	fine := csv("1,2,0.5,0.5", "3,4,0.25,0.75")
	tests := []struct {
		name  string
		files map[string]string
		args  string // of coppice; @ stands for the folder
		code  int
		says  []string
	}{
		{"a missing file", nil, "train --local --data @/none.mat", 1, []string{"none.mat", "no such file"}},
		{"a truncated .mat", map[string]string{"x.mat": good[:len(good)-40]}, "train --local --data @/x.mat", 1,
			[]string{"x.mat"}},
		{"a .mat of another kind", map[string]string{"x.mat": "hello"}, "train --local --data @/x.mat", 1, []string{"x.mat"}},
		{
			"a .mat without labels", map[string]string{"x.mat": matFile(matrix{name: "features", rows: 2, cols: 1,
				values: []float64{1, 2}})},
			"train --local --data @/x.mat", 1, []string{"x.mat", "labels"},
		},
		{
			"a NaN feature", map[string]string{"x.mat": matFile(matrix{name: "features", rows: 3, cols: 2, values: []float64{1,
				2, 3, 4, math.NaN(), 6}}, matrix{name: "labels", rows: 3, cols: 1, values: []float64{1, 1, 1}})},
			"train --local --data @/x.mat", 1, []string{"x.mat", "row 1", "feature 1", "NaN"},
		},
		{"labels that sum to 0.9", map[string]string{"x.csv": csv("1,2,0.5,0.5", "3,4,0.5,0.4")},
			"train --local --data @/x.csv", 1, []string{"x.csv", "row 1", "0.9", "--normalize"}},
		{"a negative label", map[string]string{"x.csv": csv("1,2,-0.5,1.5")}, "train --local --data @/x.csv", 1,
			[]string{"x.csv", "row 0", "label 0", "negative"}},
		{
			"two files of different row counts", map[string]string{"features.npy": npyFile(t, 5, 2),
				"labels.npy": npyFile(t, 4, 2)},
			"train --local --data @/features.npy", 1, []string{"features.npy", "labels.npy", "5", "4"},
		},
		{"an unknown kind of file", map[string]string{"x.txt": "1"}, "train --local --data @/x.txt", 1,
			[]string{"x.txt", ".mat"}},
		{"an unknown key in a spec", map[string]string{"x.csv": fine, "s.yaml": "trees: 2\ndeph: 4\n"},
			"train --local --data @/x.csv --spec @/s.yaml", 2, []string{"s.yaml:2:1", "deph", `did you mean "depth"`}},
		{"depth 40", map[string]string{"x.csv": fine, "s.yaml": "depth: 40\n"},
			"train --local --data @/x.csv --spec @/s.yaml", 2, []string{"s.yaml:1:8", "from 2 to 20"}},
		{"fewer units than split nodes", map[string]string{"x.csv": fine, "s.yaml": "outputs: 62\n"},
			"train --local --data @/x.csv --spec @/s.yaml", 2, []string{"s.yaml:1:10", "got 62 outputs", "63 split nodes"}},
		{"a missing spec", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --spec @/s.yaml", 1,
			[]string{"s.yaml", "no such file"}},
		{"a wrong setting", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --set depth=1", 2,
			[]string{"--set depth", "from 2 to 20"}},
		{"a setting without value", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --set depth", 2,
			[]string{"key=value"}},
		{"steps that are no number", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --steps many", 2,
			[]string{"--steps", "a whole number"}},
		{"a fraction of 1", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --test-fraction 1", 2,
			[]string{"--test-fraction", "below 1"}},
		{"more folds than rows", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --folds 3", 2,
			[]string{"folds", "2 samples"}},
		{"folds and a fraction", map[string]string{"x.csv": fine},
			"train --local --data @/x.csv --folds 2 --test-fraction 0.1", 2, []string{"test_fraction", "folds"}},
		{"a split that misses a row", map[string]string{"x.csv": fine, "f.csv": "row,fold\n0,0\n"},
			"train --local --data @/x.csv --split @/f.csv", 1, []string{"f.csv", "row 1"}},
		{"no data", nil, "train --local", 2, []string{"--data"}},
		{"data and dataset", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --dataset y", 2,
			[]string{"give only one"}},
		{"an unknown flag", nil, "train --lokal", 2, []string{`did you mean "--local"`, "coppice train --help"}},
		{"an unknown command", nil, "trian", 2, []string{"trian", "coppice --help"}},
		{"no command", nil, "", 2, []string{"coppice --help"}},
		{"an unknown output", nil, "version -o xml", 2, []string{"output", "json"}},
		{"age without sigma", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --labels age --range 0:5", 2,
			[]string{"--sigma"}},
		{"age without range", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --labels age --sigma 2", 2,
			[]string{"--range"}},
		{"sigma without age", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --sigma 2", 2,
			[]string{"--labels age"}},
		{"a model that is none", map[string]string{"x.csv": fine}, "predict --model @/x.csv --data @/x.csv --out @/p.csv", 1,
			[]string{"x.csv", "does not begin with the header of a model file"}},
		{"a folder that does not exist", map[string]string{"x.csv": fine},
			"train --local --data @/x.csv --model-out @/no/m.coppice", 1, []string{"folder does not exist"}},
		{"generate nothing", nil, "dataset generate --out @/x.csv --rows 0", 2, []string{"--rows"}},
		{"generate an unknown kind of file", nil, "dataset generate --out @/x.txt", 2, []string{"x.txt", ".csv", ".npz"}},
		{"predictions over the data", map[string]string{"x.csv": fine}, "predict --model @/m --data @/x.csv --out @/x.csv", 2,
			[]string{"--out", "x.csv", "reads that file"}},
		{"a model over the data", map[string]string{"x.csv": fine}, "train --local --data @/x.csv --model-out @/x.csv", 2,
			[]string{"--model-out", "reads that file"}},
		{"flags of a file for a dataset", nil, "train --dataset d --drop id", 2, []string{"--drop", "--data"}},
		{"a flag of labels for a dataset", nil, "train --dataset d --label-columns a", 2,
			[]string{"--label-columns", "--data"}},
		{"four coordinators", nil, "quickstart --coordinators 4", 2, []string{"1, 3 or 5"}},
		{"memory in powers of ten", nil, "worker --dir @/d --join h:1 --memory 8GB", 2,
			[]string{"--memory", `"8GB"`, "8GiB"}},
		{"too many slots", nil, "worker --dir @/d --join h:1 --slots 5000", 2, []string{"--slots 5000", "4096"}},
		{"a negative cache", nil, "worker --dir @/d --join h:1 --cache=-1GiB", 2, []string{"--cache", "not a size"}},
		{"a snapshot of a size without number", nil, "coordinator --dir @/d --snapshot-bytes MiB", 2,
			[]string{"--snapshot-bytes", "not a size"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { cmdtest.Refused(t, test.files, test.args, test.code, test.says) })
	}
}

// Ids and addresses that cannot be a coordinator's are wrong usage.
func TestAddressRefusals(t *testing.T) {
	tests := []struct {
		name string
		args string // of coppice; @ stands for the folder
		says []string
	}{
		{"a server that is a port only", "job list --server 7100", []string{"--server", "HOST:PORT"}},
		{"a server at no port", "job list --server 127.0.0.1:99999", []string{"--server", "not a port"}},
		{"a wrong peer", "coordinator --id a --dir @/d --peers a=1", []string{"HOST:PORT"}},
		{"a peer without address", "coordinator --id a --dir @/d --peers a", []string{"ID=HOST:PORT"}},
		{"an id that is no peer", "coordinator --id x --dir @/d --peers a=127.0.0.1:7100", []string{"peers"}},
		{"peers at the default port, without this one", "coordinator --id x --dir @/d --peers a=h1,b=h2,c=[::1]",
			[]string{"--peers does not name this coordinator"}},
		{"an id with a slash", "coordinator --id c/d --dir @/d", []string{"--id", "letters, digits"}},
		{"a peer's id with a quote", `coordinator --id a --dir @/d --peers a=h1,b"c=h2,d=h3`,
			[]string{"--peers", "letters, digits"}},
		{"a coordinator to add with such an id", "cluster add c/d=h:7100", []string{"c/d=h:7100", "letters, digits"}},
		{"peers of a restore with such an id", "restore @/b --dir @/d --peers a.b=h:7100",
			[]string{"--peers", "letters, digits"}},
		{"a peer at all interfaces", "coordinator --dir @/d --peers a=0.0.0.0:7100", []string{"--peers", "all interfaces",
			"--http 0.0.0.0:PORT"}},
		{"an address of all interfaces", "coordinator --dir @/d --address [::]:7100", []string{"--address", "all interfaces",
			"--http 0.0.0.0:PORT"}},
		{"a coordinator to add at all interfaces", "cluster add d=0.0.0.0:7100",
			[]string{"d=0.0.0.0:7100", "all interfaces"}},
		{"peers whose ports meet", "coordinator --dir @/d --peers a=127.0.0.1:7100,b=127.0.0.1:7101,c=127.0.0.1:7102",
			[]string{"a and b", "7100 to 7103", "7101 to 7104"}},
		{"peers at one place", "coordinator --dir @/d --peers a=h:7100,b=i:7100,c=h:7100",
			[]string{"a and c", "h:7100 to 7103"}},
		{"a worker that joins an address of IPv6 without a port", "worker --dir @/d --join ::1",
			[]string{"--join", "[::1]:7100"}},
		{"a worker that joins no port", "worker --dir @/d --join h:port", []string{"--join", "not a port"}},
		{"a worker that joins a port above all", "worker --dir @/d --join 127.0.0.1:99999", []string{"--join", "not a port"}},
		{"a coordinator that joins no port", "coordinator --dir @/d --join-cluster h:port --address h:7100",
			[]string{"--join-cluster", "not a port"}},
		{"a worker that joins nobody", "worker --dir @/d", []string{"--join"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { cmdtest.Refused(t, nil, test.args, cli.ExitUsage, test.says) })
	}
}

// A port that is taken and a NATS that is not there are named.
func TestServiceRefusals(t *testing.T) {
	taken, nobody := testkit.Listen(t), testkit.FreeAddress(t)
	t.Cleanup(func() { taken.Close() })
	tests := []struct {
		name string
		args []string
		says string
	}{
		{"a port that is taken", []string{"--http", taken.Addr().String()}, taken.Addr().String()},
		{"a NATS that nobody answers", []string{"--http", testkit.FreeAddress(t), "--raft", testkit.FreeAddress(t), "--nats",
			"nats://" + nobody}, nobody},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"coordinator", "--log-level", "error", "--dir", filepath.Join(dir, "d")}, test.args...)
			start := time.Now()
			e := cmdtest.Run(t, args...)
			// The last line of the log, and the error of the command.
			if e.Code != cli.ExitFailed || strings.Count(e.Stderr, "\n") != 2 || strings.Count(e.Stderr, test.says) < 2 ||
				!strings.Contains(e.Stderr, `level=ERROR msg="the coordinator ends"`) {
				t.Errorf("exit code %d:\n%s", e.Code, e.Stderr)
			}
			if taken := time.Since(start); taken > 30*time.Second {
				t.Errorf("it took %v", taken)
			}
		})
	}
}

package datasetcmd

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// A file that can be read in two ways is refused by what trains, predicts and evaluates, with exit code 2. inspect
// lists the ways, and each of its commands works.
func TestTwoWays(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	good := cmdtest.Write(t, dir, "good.csv", "a,b,label_x,label_y\n1,2,.5,.5\n3,4,.25,.75\n5,1,1,0\n")
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	cmdtest.Works(t, "train", "--local", "--data", good, "--algorithm", "aa-knn", "--set", "k=1", "--model-out", model)
	for name, c := range map[string]struct {
		content string
		says    []string
		ways    int
	}{
		"marks.tsv": {"a\tb\tlabel_x\tlabel_y\n12,345\t1\t0\t1\n999\t2\t1\t0\n", []string{"--thousands ,", "--decimal ,"},
			2},
		"mixed.csv":  {"a;b;label_x;label_y\n1,024;1.5;0;1\n999;2;1;0\n", []string{"--thousands ,", "--decimal ,"}, 1},
		"header.csv": {"400,500,600,700\n.1,.2,.5,.5\n.3,.1,1,0\n.2,.2,0,1\n", []string{"--header yes", "--header no"}, 1},
		"counts.csv": {"0,1,2,3\n.1,.2,.5,.5\n.3,.1,1,0\n.2,.2,0,1\n", []string{"--header yes", "--header no"}, 1},
		"prefixes.csv": {"a,y_b,label_x,label_y\n1,2,.5,.5\n3,4,.25,.75\n",
			[]string{"--label-prefix label_", "--label-prefix y_"}, 1},
		"twins.csv": {"a,a,label_x,label_y\n1,2,.5,.5\n3,4,.25,.75\n", []string{"--drop 1", "--drop 0"}, 2},
	} {
		path := cmdtest.Write(t, dir, name, c.content)
		for _, args := range [][]string{
			{"train", "--local", "--data", path}, {"predict", "--model", model, "--out", out, "--data", path},
			{"evaluate", "--model", model, "--data", path},
		} {
			e := cmdtest.Run(t, args...)
			if name == "prefixes.csv" && args[0] != "train" { // the model knows its labels
				continue
			}
			if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, name) {
				t.Errorf("%v: exit code %d, %s", args, e.Code, e.Stderr)
			}
			for _, part := range c.says {
				if !strings.Contains(e.Stderr, part) {
					t.Errorf("%v lacks %q: %s", args, part, e.Stderr)
				}
			}
		}
		e := cmdtest.Run(t, "dataset", "inspect", path)
		if e.Code != cli.ExitOK || e.Stderr != "" {
			t.Errorf("inspect %s: exit code %d, %s", name, e.Code, e.Stderr)
		}
		var f inspect.Inspection
		cmdtest.JSON(t, &f, "dataset", "inspect", path)
		read := 0
		for _, r := range f.Readings {
			for _, command := range r.Commands[:min(1, len(r.Commands))] {
				cmdtest.Works(t, append(cmdtest.Words(t, command), "--algorithm", "aa-knn", "--set", "k=1")...)
				read++
			}
		}
		if f.Refused == "" || read < c.ways {
			t.Errorf("%s: %d ways to read it, want %d or more: %s", name, read, c.ways, e.Stdout)
		}
	}
}

// A command has the flags of inspect and the flags of the reading, each once.
func TestGivenFlagsInCommands(t *testing.T) {
	dir := t.TempDir()
	boxes := cmdtest.Write(t, dir, "boxes.csv", "id,y_min,y_max,label_joy,label_sad\na,20,40,3,7\nb,21,41,5,5\n")
	people := cmdtest.Write(t, dir, "it's.csv", "who,Age,\"a,b\",c\nx,31,1,2\ny,42,2,1\nz,27,3,3\n")
	for _, c := range []struct {
		args  []string
		wants string
	}{
		{[]string{boxes, "--labels", "counts"}, "coppice train --local --data " + boxes +
			" --label-prefix label_ --labels counts --row-names id"},
		{[]string{boxes, "--labels", "counts", "--drop", "y_min", "--label-prefix", "label_"},
			"coppice train --local --data " + boxes + " --labels counts --label-prefix label_ --drop y_min --row-names id"},
		{
			[]string{people, "--labels", "age", "--sigma", "2.5", "--range", "20:50", "--drop", `a\,b`},
			`coppice train --local --data '` + strings.ReplaceAll(people, "'", `'\''`) +
				`' --labels age --drop 'a\,b' --sigma 2.5 --range 20:50 --label-columns Age --row-names who`,
		},
	} {
		var f inspect.Inspection
		cmdtest.JSON(t, &f, append([]string{"dataset", "inspect"}, c.args...)...)
		if len(f.Readings) == 0 || len(f.Readings[0].Commands) == 0 || f.Readings[0].Commands[0] != c.wants {
			t.Errorf("%v: %+v, want %s", c.args, f.Readings, c.wants)
			continue
		}
		cmdtest.Works(t, append(cmdtest.Words(t, c.wants), "--algorithm", "aa-knn", "--set", "k=1")...)
	}
}

// What was decided by default is printed, and in JSON instead.
func TestNotes(t *testing.T) {
	path := cmdtest.Write(t, t.TempDir(), "c.csv", "# made by hand\nLabel;a\noak;1,5\nelm;2\noak;3\n")
	args := []string{"train", "--local", "--data", path, "--labels", "class", "--algorithm", "aa-knn", "--set", "k=1"}
	want := []string{
		`";" between columns, a comma before decimals`, "line 2 is the header", "1 line of comments before it is skipped",
		`the class is read from column 0, "Label"`, "2 classes: elm (1 sample), oak (2 samples)",
	}
	e := cmdtest.Run(t, args...)
	for _, note := range want {
		if !strings.Contains(e.Stderr, path+": "+note+"\n") {
			t.Errorf("%s lacks %q", e.Stderr, note)
		}
	}
	var r results.Result
	cmdtest.JSON(t, &r, args...)
	if got := strings.Join(r.Notes, "\n"); got != path+": "+strings.Join(want, "\n"+path+": ") {
		t.Errorf("in JSON: %s", got)
	}
	if e := cmdtest.Run(t, append(args, "-o", "json")...); e.Code != cli.ExitOK ||
		strings.Contains(e.Stderr, "is the header") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	var f inspect.Inspection
	cmdtest.JSON(t, &f, "dataset", "inspect", path, "--labels", "class")
	if got := strings.Join(f.Notes, "\n"); got != strings.Join(want, "\n") || f.Columns[0].Role != inspect.RoleClass ||
		f.Encoding != "UTF-8" {
		t.Errorf("inspect: %s, %+v", got, f.Columns)
	}
}

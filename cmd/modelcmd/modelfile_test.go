package modelcmd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// Columns and labels in another order, under any names by which a model knows them,
// give the same predictions and measures.
func TestMatchedByName(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(120)
	data, model := m.Trained(t, dir)
	var want evaluation
	cmdtest.JSON(t, &want, "evaluate", "--model", model, "--data", data)
	predicted := clitest.Predicted(t, model, data)
	for _, c := range []struct {
		name    string
		header  []string
		columns []int
		flags   []string
		moved   int
	}{
		{"features in another order", []string{"b", "a", "c", "d", "label_happy", "label_sad", "label_angry"},
			[]int{1, 0, 2, 3, 4, 5, 6}, nil, 2},
		{"labels in another order", []string{"a", "b", "c", "d", "label_sad", "label_angry", "label_happy"},
			[]int{0, 1, 2, 3, 5, 6, 4}, nil, 0},
		{"labels between the features", []string{"sad", "d", "happy", "a", "angry", "c", "b"},
			[]int{5, 3, 4, 0, 6, 2, 1}, nil, 3},
		{"labels listed in another order", []string{"a", "b", "c", "d", "happy", "sad", "angry"}, []int{0, 1, 2, 3, 4, 5, 6},
			[]string{"--label-columns", "sad, happy,angry"}, 0},
		{"blanks around names", []string{" b", "a\t", " c ", "d", "label_happy ", " label_sad", "angry"},
			[]int{1, 0, 2, 3, 4, 5, 6}, nil, 2},
	} {
		path := m.File(t, dir, "x.csv", c.header, c.columns...)
		var got evaluation
		cmdtest.JSON(t, &got, append([]string{"evaluate", "--model", model, "--data", path}, c.flags...)...)
		if diff := cmp.Diff([]any{want.Measures, want.MeanPredictor}, []any{got.Measures, got.MeanPredictor}); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if f := got.Matched; f.Features.By != read.ByName || f.Labels.By != read.ByName || f.Features.Moved != c.moved {
			t.Errorf("%s: features %+v, labels %+v", c.name, f.Features, f.Labels)
		}
		if diff := cmp.Diff(predicted, clitest.Predicted(t, model, path, c.flags...)); diff != "" {
			t.Errorf("%s: predictions differ: %s", c.name, diff)
		}
	}
}

// TestPermutedColumns: whatever the order of a file's columns, its predictions are the
// same, bit for bit.
func TestPermutedColumns(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(40)
	data, model := m.Trained(t, dir)
	want := clitest.Predicted(t, model, data)
	columns := []int{0, 1, 2, 3, 4, 5, 6}
	rapid.Check(t, func(r *rapid.T) {
		order := rapid.Permutation(columns).Draw(r, "order")
		if rapid.Bool().Draw(r, "without labels") {
			order = slices.DeleteFunc(order, func(c int) bool { return c > 3 })
		}
		var header []string
		for _, c := range order {
			header = append(header, m.Header[c])
		}
		e := cmdtest.Run(t, "predict", "--model", model, "--data", m.File(r, dir, "x.csv", header, order...), "--out", "-")
		if e.Code != cli.ExitOK || e.Stdout != want {
			r.Fatalf("exit code %d, %s; want\n%s, got\n%s", e.Code, e.Stderr, want, e.Stdout)
		}
	})
}

// Other names are refused; the message names the first, and how many.
func TestOtherNamesAreRefused(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(30)
	_, model := m.Trained(t, dir)
	all := []int{0, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		header  []string
		columns []int
		predict string // what predict says; "": it works
		says    string // what evaluate says
	}{
		{[]string{"a", "b", "x", "d", "happy", "sad", "angry"}, all,
			`feature 2 (counted from 0) differs: the model reads "c", the file has "x"`, `unknown to the model: 1 ("x")`},
		{[]string{"a", "b", "C", "d", "happy", "sad", "angry"}, all, `missing from the file: 1 ("c")`, `the file has "C"`},
		{[]string{"id", "a", "b", "c", "d", "happy", "sad", "angry"}, []int{0, 0, 1, 2, 3, 4, 5, 6},
			`unknown to the model: 1 ("id")`, `the file has "id"`},
		{[]string{"a", "b", "c", "d", "happy", "sad", "label_glad"}, all, "",
			`label 2 (counted from 0) differs: the model predicts "angry", the file has "glad"`},
		{[]string{"a", "b", "c", "d", "happy", "sad"}, all[:6], "", `missing from the file: 1 ("angry")`},
		{[]string{"a", "b", "c", "a", "happy", "sad", "angry"}, all, `columns 0 and 3 (counted from 0) are both named "a"`,
			"both named"},
	} {
		path := m.File(t, dir, "x.csv", c.header, c.columns...)
		before, code := cmdtest.Contents(t, dir), cli.ExitFailed
		if c.says == "both named" {
			code = cli.ExitUsage // --drop says which to read
		}
		e := cmdtest.Run(t, "evaluate", "--model", model, "--data", path)
		if e.Code != code || e.Stdout != "" || !strings.Contains(e.Stderr, "x.csv: ") || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("evaluate %v: exit code %d, %s%s; want %s", c.header, e.Code, e.Stdout, e.Stderr, c.says)
		}
		e = cmdtest.Run(t, "predict", "--model", model, "--data", path, "--out", filepath.Join(dir, "p.csv"))
		if c.predict == "" {
			if e.Code != cli.ExitOK {
				t.Errorf("predict %v: %s", c.header, e.Stderr)
			}
			os.Remove(filepath.Join(dir, "p.csv"))
			continue
		}
		if e.Code != code || !strings.Contains(e.Stderr, c.predict) || cmp.Diff(before, cmdtest.Contents(t, dir)) != "" {
			t.Errorf("predict %v: exit code %d, %s; want %s", c.header, e.Code, e.Stderr, c.predict)
		}
	}
}

// What training was told about labels, prediction knows.
func TestPassedOverLabels(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(30)
	all := []int{0, 1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		name   string
		header []string
		flags  []string
	}{
		{"listed by name", []string{"a", "b", "c", "d", "happy", "sad", "angry"},
			[]string{"--label-columns", "happy,sad,angry"}},
		{"another prefix", []string{"a", "b", "y_c", "d", "z_happy", "z_sad", "z_angry"}, []string{"--label-prefix", "z_"}},
		{"listed by number", nil, []string{"--label-columns", "4,5,6"}},
		{"the last is an age", []string{"a", "b", "c", "d", "years"}, []string{"--labels", "age", "--sigma", "1", "--range",
			"0:3", "--label-columns", "years"}},
	} {
		columns := all
		if c.header != nil {
			columns = all[:len(c.header)]
		}
		data, model := m.File(t, dir, "x.csv", c.header, columns...), filepath.Join(dir, "m.coppice")
		cmdtest.Works(t, clitest.TrainArgs(data, append(c.flags, "--model-out", model)...)...)
		got := clitest.Predicted(t, model, data)
		header := c.header
		if header != nil {
			header = header[:4]
		}
		if want := clitest.Predicted(t, model, m.File(t, dir, "y.csv", header, 0, 1, 2, 3)); got != want {
			t.Errorf("%s: with labels %s\nwithout %s", c.name, got, want)
		}
		if c.name == "the last is an age" {
			c.flags = c.flags[:6] // where the column is, is known
		} else {
			c.flags = nil
		}
		cmdtest.Works(t, append([]string{"evaluate", "--model", model, "--data", data}, c.flags...)...)
	}
}

// A match by position is said, in text and in JSON.
func TestMatchedByPosition(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(30)
	_, model := m.Trained(t, dir)
	data := m.File(t, dir, "x.csv", nil, 0, 1, 2, 3, 4, 5, 6)
	labels := []string{"--label-columns", "4,5,6"}
	const says = "features are matched with the model by position: the file does not have the names of features\n"
	text := cmdtest.Works(t, append([]string{"evaluate", "--model", model, "--data", data}, labels...)...)
	if !strings.Contains(text, says) || !strings.Contains(text,
		"labels are matched with the model by position: the file does not have the names of labels\n") {
		t.Errorf("evaluate says\n%s", text)
	}
	out := filepath.Join(dir, "p.csv")
	if text := cmdtest.Works(t, append([]string{"predict", "--model", model, "--data", data, "--out", out},
		labels...)...); !strings.Contains(text, says) {
		t.Errorf("predict says\n%s", text)
	}
	var shown struct{ Matched read.Matching }
	cmdtest.JSON(t, &shown, append([]string{"predict", "--model", model, "--data", data, "--out", out}, labels...)...)
	if f := shown.Matched.Features; f.By != read.ByPosition || f.Why != "the file does not have the names of features" {
		t.Errorf("features %+v", f)
	}
	sparse := cmdtest.Write(t, dir, "x.libsvm", "1:2 2:1\n3:1\n")
	if text := cmdtest.Works(t, "predict", "--model", model, "--data", sparse, "--out", out); !strings.Contains(text,
		"the file has 1 fewer than the model") {
		t.Errorf("predict of a sparse file says\n%s", text)
	}
	cmdtest.Refused(t, map[string]string{"x.libsvm": "1:2\n2:2 5:1\n"}, "predict --model "+model+
		" --data @/x.libsvm --out @/p.csv", cli.ExitFailed, []string{"x.libsvm: row 1",
		"the sample has feature 4, but the model reads features 0 to 3"})
}

// The names of a model's columns are shown, the first of them to people.
func TestShownNames(t *testing.T) {
	testkit.WithoutRace(t)
	dir, m := t.TempDir(), clitest.NewMoods(30)
	_, model := m.Trained(t, dir)
	if text := cmdtest.Works(t, "model", "show", model); !strings.Contains(text, "a, b, c, d\n") ||
		!strings.Contains(text, "happy, sad, angry\n") {
		t.Errorf("got\n%s", text)
	}
}

// TestLabelsOfModels: of a file that does not have the labels of a model of classes, or of numbers, the error says
// with which flags it is read.
func TestLabelsOfModels(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	path := cmdtest.Write(t, dir, "c.csv", "a,b,class\n1,7,x\n2,6,y\n3,7,x\n4,3,y\n5,1,z\n6,2,z\n")
	other := cmdtest.Write(t, dir, "d.csv", "a,b,kind\n1,7,x\n2,6,y\n")
	model := filepath.Join(dir, "c.model")
	cmdtest.Works(t, "train", "--local", "--data", path, "--labels", "class", "--algorithm", "rf", "--set", "trees=2",
		"--set", "min_samples=2", "--model-out", model)
	for _, file := range []string{path, other} {
		e := cmdtest.Run(t, "evaluate", "--model", model, "--data", file, "--labels", "distributions")
		if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "the model predicts classes: give --labels class") ||
			!strings.Contains(e.Stderr, "--label-columns") {
			t.Errorf("exit code %d, %s", e.Code, e.Stderr)
		}
		cmdtest.Works(t, "evaluate", "--model", model, "--data", file, "--labels", "class", "--label-columns", "2")
	}
	if e := cmdtest.Run(t, "evaluate", "--model", model, "--data", path, "--labels", "class", "--label-columns",
		"a"); e.Code != cli.ExitFailed || strings.Contains(e.Stderr, "the model has classes") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
	model = filepath.Join(dir, "n.model")
	cmdtest.Works(t, "train", "--local", "--data", path, "--labels", "age", "--label-columns", "b", "--drop", "class",
		"--range", "0:9", "--sigma", "2", "--algorithm", "rf", "--set", "trees=2", "--set", "min_samples=2",
		"--model-out", model)
	if e := cmdtest.Run(t, "evaluate", "--model", model, "--data", path, "--drop", "class", "--labels",
		"distributions"); e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "the model predicts numbers: give "+
		"--labels age --range 0:9") {
		t.Errorf("exit code %d, %s", e.Code, e.Stderr)
	}
}

// TestReadingOnClusters checks that models of a cluster and of an experiment keep the flags of the import
// and read the file without flags.
func TestReadingOnClusters(t *testing.T) {
	dir := t.TempDir()
	c := cmdtest.Start(t, 1, 1)
	server := c.Servers()
	data := cmdtest.Write(t, dir, "people.csv", clitest.PeopleFile([]string{"id", "x1", "mood", "word", "x2"}, ",",
		".", true))
	flags := []string{"--labels", "class", "--label-columns", "mood", "--drop", "id", "--categories", "word"}
	cmdtest.Works(t, append([]string{"dataset", "import", "--data", data, "--name", "people", "--server", server},
		flags...)...)
	cmdtest.Works(t, "train", "--dataset", "people", "--algorithm", "aa-knn", "--set", "k=1", "--name", "first",
		"--server", server)
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, "model", "download", "first", "--out", model, "--server", server)
	text := cmdtest.Works(t, "dataset", "show", "people", "--server", server)
	for _, part := range []string{"--labels class --label-columns mood --drop id --categories word", "word: w, wx, wxx"} {
		if !strings.Contains(text, part) {
			t.Errorf("dataset show lacks %q:\n%s", part, text)
		}
	}
	spec := cmdtest.Write(t, dir, "e.yaml", "name: e\ndatasets: [{file: people.csv, labels: class, label_columns: "+
		"[mood], drop: [id], categories: [word]}]\nfolds: 2\nmethods: [{algorithm: aa-knn, settings: {k: 1}}]\n")
	cmdtest.Works(t, "experiment", "run", spec, "--local", "--keep-models")
	models, err := filepath.Glob(filepath.Join(dir, "e.experiment", "models", "*.model"))
	if err != nil || len(models) != 2 {
		t.Fatalf("%d models, error %v", len(models), err)
	}
	local := filepath.Join(dir, "local.model")
	cmdtest.Works(t, append(clitest.NearestNeighbour(data, local), flags...)...)
	b, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadFile(model); err != nil || !slices.Equal(b, there) {
		t.Errorf("the cluster's model is another file, error %v", err)
	}
	for _, m := range append(models, model) {
		var e evaluation
		cmdtest.JSON(t, &e, "evaluate", "--model", m, "--data", data)
		if accuracy := e.Added.Model.Classes.Accuracy.Mean; e.Rows != 24 || m == model && accuracy != 1 {
			t.Errorf("%s: %d rows, accuracy %v", m, e.Rows, accuracy)
		}
		if lines := strings.Count(clitest.Predicted(t, m, data), "\n"); lines != 25 {
			t.Errorf("%s: %d lines", m, lines)
		}
	}
}

// TestUnseen: a value that is none of the model's levels is refused with its place, and the advice
// works: all features of the category are 0 then, and the output says in how many rows.
func TestUnseen(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model, out := cmdtest.Write(t, dir, "t.csv",
		"color,x,label_a,label_b\nred,1,.25,.75\nblue,1,.5,.5\nred,3,.125,.875\ngreen,3,1,0\n"),
		filepath.Join(dir, "m.model"), filepath.Join(dir, "p.csv")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--categories", "color")...)
	new := cmdtest.Write(t, dir, "new.csv", "x,color,label_a,label_b\n1,blue,.5,.5\n3,violet,.125,.875\n1,,.5,.5\n")
	for _, command := range [][]string{{"predict", "--out", out}, {"evaluate"}} {
		args := append(command, "--model", model, "--data", new, "--missing", "drop")
		e := cmdtest.Run(t, args...)
		if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr,
			`row 1, column 1 "color" (counted from 0; line 3): "violet" is not a level of this category, which has 3 ("blue", "green", "red") levels; --unseen ignore`) {
			t.Errorf("%s: exit code %d: %s", command[0], e.Code, e.Stderr)
		}
		var r struct {
			Rows   int `json:"samples"`
			Unseen struct {
				Rows  int    `json:"samples"`
				First string `json:"first"`
			} `json:"unseen"`
		}
		cmdtest.JSON(t, &r, append(args, "--unseen", "ignore")...)
		if r.Rows != 2 || r.Unseen.Rows != 1 || r.Unseen.First != `row 1 (counted from 0), color "violet"` {
			t.Errorf("%s: %+v", command[0], r)
		}
	}
	var shown modelShown
	cmdtest.JSON(t, &shown, "model", "show", model)
	if k := shown.Reading.Categories; len(k) != 1 || k[0].Name != "color" ||
		!slices.Equal(k[0].Levels, []string{"blue", "green", "red"}) ||
		!slices.Equal(shown.FeatureNames, []string{"color=blue", "color=green", "color=red", "x"}) {
		t.Errorf("%+v, features %q", k, shown.FeatureNames)
	}
	if text := cmdtest.Works(t, "model", "show", model); !strings.Contains(text, "color: blue, green, red") ||
		!strings.Contains(text, "--categories color") {
		t.Errorf("model show:\n%s", text)
	}
	// a level has one row
	cmdtest.Works(t, "train", "--local", "--algorithm", "aa-knn", "--set", "k=1", "--data", data, "--categories", "color",
		"--folds", "4")
}

// TestRepeatAsRead: the command that model show prints trains the same model again.
func TestRepeatAsRead(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "people.csv",
		strings.ReplaceAll(clitest.PeopleFile([]string{"id", "x1", "mood", "word", "x2"}, ";", ",", true), "word",
			"the 'word'"))
	model, again := filepath.Join(dir, "m.model"), filepath.Join(dir, "n.model")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--labels", "class", "--label-columns", "mood", "--drop", "id",
		"--categories", "the 'word'", "--delimiter", ";", "--decimal", ",")...)
	var shown, repeated modelShown
	cmdtest.JSON(t, &shown, "model", "show", model)
	e := exec.Command("sh", "-c", "printf '%s\\n' "+strings.Replace(shown.Repeat, "--data FILE", "--data '"+data+"'", 1))
	words, err := e.Output()
	if err != nil {
		t.Fatal(err)
	}
	cmdtest.Works(t, append(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")[1:], "--model-out", again)...)
	cmdtest.JSON(t, &repeated, "model", "show", again)
	if shown.Digest != repeated.Digest {
		t.Errorf("%s trains another model", shown.Repeat)
	}
}

// TestRepeatOfFold: the command that model show prints for the model of a fold trains that fold alone, to the same
// model.
func TestRepeatOfFold(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data := cmdtest.ArtificialFile(t, dir, "x.csv", 40, 1)
	cmdtest.Works(t, "train", "--local", "--data", data, "--algorithm", "structrf", "--set", "trees=2", "--folds", "3",
		"--model-out", filepath.Join(dir, "m.model"))
	var shown, repeated modelShown
	cmdtest.JSON(t, &shown, "model", "show", filepath.Join(dir, "m-fold2.model"))
	again := filepath.Join(dir, "again.model")
	cmdtest.Works(t, append(cmdtest.Words(t, strings.Replace(shown.Repeat, "--data FILE", "--data '"+data+"'", 1)),
		"--model-out", again)...)
	cmdtest.JSON(t, &repeated, "model", "show", again)
	if shown.Digest != repeated.Digest || !strings.Contains(shown.Repeat, "--folds 3 --fold 2") {
		t.Errorf("%s trains another model", shown.Repeat)
	}
}

// TestMeanAsTrained: a model keeps the means of its training rows, on a cluster too, and predicts rows
// that lack values with them.
func TestMeanAsTrained(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("x,y,word,label_a,label_b\n")
	for i := range 40 {
		x, y, word := fmt.Sprint(i), fmt.Sprint(100-i*i), []string{"u", "v"}[i%2]
		switch i % 5 {
		case 1:
			x = ""
		case 2:
			y = "NA"
		case 3:
			word = "?"
		}
		share := float64(1+i%7) / 8
		fmt.Fprintf(&b, "%s,%s,%s,%v,%v\n", x, y, word, share, 1-share)
	}
	data := cmdtest.Write(t, dir, "holes.csv", b.String())
	c := cmdtest.Start(t, 1, 2)
	for _, by := range []string{"mean", "median"} {
		here, there, out := filepath.Join(dir, by+"-here.model"), filepath.Join(dir, by+"-there.model"),
			filepath.Join(dir, "p.csv")
		args := []string{"--algorithm", "structrf", "--set", "trees=3", "--set", "min_samples=4", "--test-fraction", "0.25"}
		reading := []string{"--data", data, "--missing", by, "--categories", "word"}
		cmdtest.Works(t, slices.Concat([]string{"train", "--local", "--model-out", here}, args, reading)...)
		cmdtest.Works(t, slices.Concat([]string{"dataset", "import", "--name", by, "--server", c.Servers()}, reading)...)
		cmdtest.Works(t, slices.Concat([]string{"train", "--dataset", by, "--name", by, "--model-out", there, "--server",
			c.Servers()}, args)...)
		one, err := os.ReadFile(here)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := os.ReadFile(there); err != nil || !slices.Equal(one, two) {
			t.Errorf("%s: the cluster's model is another file, error %v", by, err)
		}
		var shown modelShown
		cmdtest.JSON(t, &shown, "model", "show", here)
		if len(shown.Fill) != 4 || shown.Job.Fill != by {
			t.Fatalf("%s: filled with %v", by, shown.Fill)
		}
		empty := cmdtest.Write(t, dir, "empty.csv", "word,x,y\n,,\nu,1,2\n")
		e := cmdtest.Run(t, "predict", "--model", here, "--data", empty, "--out", out)
		if e.Code != cli.ExitOK || !strings.Contains(e.Stderr, "--missing "+by) {
			t.Fatalf("exit code %d: %s", e.Code, e.Stderr)
		}
		f := shown.Fill
		full := cmdtest.Write(t, dir, "full.csv", fmt.Sprintf("x,y,word=u,word=v\n%v,%v,%v,%v\n1,2,1,0\n", f[0], f[1],
			f[2], f[3]))
		if want, got := clitest.Predicted(t, here, full), clitest.Predicted(t, here, empty); want != got {
			t.Errorf("%s: predictions %s, want %s", by, got, want)
		}
		var ev evaluation
		if cmdtest.JSON(t, &ev, "evaluate", "--model", here, "--data", data); ev.Rows != 40 {
			t.Errorf("%s: %d rows", by, ev.Rows)
		}
	}
	plain := filepath.Join(dir, "plain.model")
	cmdtest.Works(t, clitest.NearestNeighbour(data, plain, "--missing", "0", "--categories", "word")...)
	if e := cmdtest.Run(t, "predict", "--model", plain, "--data", data, "--out", "-", "--missing",
		"mean"); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "the model does not have the mean") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "dataset", "import", "--data", data, "--name", "mean", "--missing", "median", "--categories",
		"word", "--server", c.Servers()); e.Code == cli.ExitOK || !strings.Contains(e.Stderr, "filled with mean") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	if e := cmdtest.Run(t, "inspect", "node", "--data", data, "--missing", "mean", "--categories",
		"word"); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "--missing mean") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
}

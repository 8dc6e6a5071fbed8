package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadingOnClusters checks that models of a cluster and of an experiment keep the flags of the import
// and read the file without flags.
func TestReadingOnClusters(t *testing.T) {
	dir := t.TempDir()
	c := start(t, 1, 1)
	server := c.Servers()
	data := write(t, dir, "people.csv", peopleFile([]string{"id", "x1", "mood", "word", "x2"}, ",", ".", true))
	flags := []string{"--labels", "class", "--label-columns", "mood", "--drop", "id", "--categories", "word"}
	works(t, append([]string{"dataset", "import", "--data", data, "--name", "people", "--server", server}, flags...)...)
	works(t, "train", "--dataset", "people", "--algorithm", "aa-knn", "--set", "k=1", "--name", "first", "--server", server)
	model := filepath.Join(dir, "m.model")
	works(t, "model", "download", "first", "--out", model, "--server", server)
	text := works(t, "dataset", "show", "people", "--server", server)
	for _, part := range []string{"--labels class --label-columns mood --drop id --categories word", "word: w, wx, wxx"} {
		if !strings.Contains(text, part) {
			t.Errorf("dataset show lacks %q:\n%s", part, text)
		}
	}
	spec := write(t, dir, "e.yaml", "name: e\ndatasets: [{file: people.csv, labels: class, label_columns: [mood], drop: [id], categories: [word]}]\nfolds: 2\nmethods: [{algorithm: aa-knn, settings: {k: 1}}]\n")
	works(t, "experiment", "run", spec, "--local", "--keep-models")
	models, err := filepath.Glob(filepath.Join(dir, "e.experiment", "models", "*.model"))
	if err != nil || len(models) != 2 {
		t.Fatalf("%d models, error %v", len(models), err)
	}
	local := filepath.Join(dir, "local.model")
	works(t, append(knn(data, local), flags...)...)
	b, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	if there, err := os.ReadFile(model); err != nil || !slices.Equal(b, there) {
		t.Errorf("the cluster's model is another file, error %v", err)
	}
	for _, m := range append(models, model) {
		var e evaluation
		inJSON(t, &e, "evaluate", "--model", m, "--data", data)
		if accuracy := e.Added.Model.Classes.Accuracy.Mean; e.Rows != 24 || m == model && accuracy != 1 {
			t.Errorf("%s: %d rows, accuracy %v", m, e.Rows, accuracy)
		}
		if lines := strings.Count(predictedBy(t, m, data), "\n"); lines != 25 {
			t.Errorf("%s: %d lines", m, lines)
		}
	}
}

// TestUnseen: a value that is none of the model's levels is refused with its place, and the advice
// works: all features of the category are 0 then, and the output says in how many rows.
func TestUnseen(t *testing.T) {
	dir := t.TempDir()
	data, model, out := write(t, dir, "t.csv", "color,x,label_a,label_b\nred,1,.25,.75\nblue,1,.5,.5\nred,3,.125,.875\ngreen,3,1,0\n"), filepath.Join(dir, "m.model"), filepath.Join(dir, "p.csv")
	works(t, knn(data, model, "--categories", "color")...)
	new := write(t, dir, "new.csv", "x,color,label_a,label_b\n1,blue,.5,.5\n3,violet,.125,.875\n1,,.5,.5\n")
	for _, command := range [][]string{{"predict", "--out", out}, {"evaluate"}} {
		args := append(command, "--model", model, "--data", new, "--missing", "drop")
		e := coppice(t, args...)
		if e.code != exitFailed || !strings.Contains(e.stderr, `row 1, column 1 "color" (counted from 0; line 3): "violet" is not a level of this category, which has 3 ("blue", "green", "red") levels; --unseen ignore`) {
			t.Errorf("%s: exit code %d: %s", command[0], e.code, e.stderr)
		}
		var r struct {
			Rows   int `json:"samples"`
			Unseen struct {
				Rows  int    `json:"samples"`
				First string `json:"first"`
			} `json:"unseen"`
		}
		inJSON(t, &r, append(args, "--unseen", "ignore")...)
		if r.Rows != 2 || r.Unseen.Rows != 1 || r.Unseen.First != `row 1 (counted from 0), color "violet"` {
			t.Errorf("%s: %+v", command[0], r)
		}
	}
	var shown modelShown
	inJSON(t, &shown, "model", "show", model)
	if k := shown.Reading.Categories; len(k) != 1 || k[0].Name != "color" || !slices.Equal(k[0].Levels, []string{"blue", "green", "red"}) || !slices.Equal(shown.FeatureNames, []string{"color=blue", "color=green", "color=red", "x"}) {
		t.Errorf("%+v, features %q", k, shown.FeatureNames)
	}
	if text := works(t, "model", "show", model); !strings.Contains(text, "color: blue, green, red") || !strings.Contains(text, "--categories color") {
		t.Errorf("model show:\n%s", text)
	}
	works(t, "train", "--local", "--algorithm", "aa-knn", "--set", "k=1", "--data", data, "--categories", "color", "--folds", "4") // a level has one row
}

// TestRepeatAsRead: the command that model show prints trains the same model again.
func TestRepeatAsRead(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "people.csv", strings.ReplaceAll(peopleFile([]string{"id", "x1", "mood", "word", "x2"}, ";", ",", true), "word", "the 'word'"))
	model, again := filepath.Join(dir, "m.model"), filepath.Join(dir, "n.model")
	works(t, knn(data, model, "--labels", "class", "--label-columns", "mood", "--drop", "id", "--categories", "the 'word'", "--delimiter", ";", "--decimal", ",")...)
	var shown, repeated modelShown
	inJSON(t, &shown, "model", "show", model)
	e := exec.Command("sh", "-c", "printf '%s\\n' "+strings.Replace(shown.Repeat, "--data FILE", "--data '"+data+"'", 1))
	words, err := e.Output()
	if err != nil {
		t.Fatal(err)
	}
	works(t, append(strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")[1:], "--model-out", again)...)
	inJSON(t, &repeated, "model", "show", again)
	if shown.Digest != repeated.Digest {
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
	data := write(t, dir, "holes.csv", b.String())
	c := start(t, 1, 2)
	for _, by := range []string{"mean", "median"} {
		here, there, out := filepath.Join(dir, by+"-here.model"), filepath.Join(dir, by+"-there.model"), filepath.Join(dir, "p.csv")
		args := []string{"--algorithm", "structrf", "--set", "trees=3", "--set", "min_samples=4", "--test-fraction", "0.25"}
		reading := []string{"--data", data, "--missing", by, "--categories", "word"}
		works(t, slices.Concat([]string{"train", "--local", "--model-out", here}, args, reading)...)
		works(t, slices.Concat([]string{"dataset", "import", "--name", by, "--server", c.Servers()}, reading)...)
		works(t, slices.Concat([]string{"train", "--dataset", by, "--name", by, "--model-out", there, "--server", c.Servers()}, args)...)
		one, err := os.ReadFile(here)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := os.ReadFile(there); err != nil || !slices.Equal(one, two) {
			t.Errorf("%s: the cluster's model is another file, error %v", by, err)
		}
		var shown modelShown
		inJSON(t, &shown, "model", "show", here)
		if len(shown.Fill) != 4 || shown.Job.Fill != by {
			t.Fatalf("%s: filled with %v", by, shown.Fill)
		}
		empty := write(t, dir, "empty.csv", "word,x,y\n,,\nu,1,2\n")
		e := coppice(t, "predict", "--model", here, "--data", empty, "--out", out)
		if e.code != exitOK || !strings.Contains(e.stderr, "--missing "+by) {
			t.Fatalf("exit code %d: %s", e.code, e.stderr)
		}
		f := shown.Fill
		full := write(t, dir, "full.csv", fmt.Sprintf("x,y,word=u,word=v\n%v,%v,%v,%v\n1,2,1,0\n", f[0], f[1], f[2], f[3]))
		if want, got := predictedBy(t, here, full), predictedBy(t, here, empty); want != got {
			t.Errorf("%s: predictions %s, want %s", by, got, want)
		}
		var ev evaluation
		if inJSON(t, &ev, "evaluate", "--model", here, "--data", data); ev.Rows != 40 {
			t.Errorf("%s: %d rows", by, ev.Rows)
		}
	}
	plain := filepath.Join(dir, "plain.model")
	works(t, knn(data, plain, "--missing", "0", "--categories", "word")...)
	if e := coppice(t, "predict", "--model", plain, "--data", data, "--out", "-", "--missing", "mean"); e.code != exitUsage || !strings.Contains(e.stderr, "the model does not have the mean") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
	if e := coppice(t, "dataset", "import", "--data", data, "--name", "mean", "--missing", "median", "--categories", "word", "--server", c.Servers()); e.code == exitOK || !strings.Contains(e.stderr, "filled with mean") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
	if e := coppice(t, "inspect", "node", "--data", data, "--missing", "mean", "--categories", "word", "--algorithm", "structrf"); e.code != exitUsage || !strings.Contains(e.stderr, "--missing mean") {
		t.Errorf("exit code %d: %s", e.code, e.stderr)
	}
}

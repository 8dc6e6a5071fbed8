package modelcmd

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// people is a file of ages with exact numbers, intervals and groups: 6 rows of each of 15
// persons.
func people() string {
	var b strings.Builder
	b.WriteString("x,y,who,age,from,to\n")
	for i := range 90 {
		age := float64(i*7%39)/2 + 1
		fmt.Fprintf(&b, "%v,%d,p%d,%v,%v,%v\n", age+float64(i%5)/4, i%3, i/6, age, age-1, age+0.5)
	}
	return b.String()
}

// inPeople are the flags that people is read with.
var inPeople = []string{"--labels", "age", "--sigma", "2", "--range", "0:21", "--values", "age", "--intervals",
	"from,to", "--groups", "who"}

// byRF trains a small random forest here.
func byRF(data string, more ...string) []string {
	return append([]string{"train", "--local", "--data", data, "--algorithm", "rf", "--set", "trees=5"}, more...)
}

// TestClassesFromTrainingToPrediction: what train, evaluate, predict and model show say of
// classes agrees.
func TestClassesFromTrainingToPrediction(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model, out := cmdtest.Write(t, dir, "kinds.csv", clitest.Kinds()), filepath.Join(dir, "m.coppice"),
		filepath.Join(dir, "p.csv")
	var r results.Result
	cmdtest.JSON(t, &r, byRF(data, "--labels", "class", "--model-out", model)...)
	var e evaluation
	cmdtest.JSON(t, &e, "evaluate", "--model", model, "--data", data, "--labels", "class")
	if d := cmp.Diff(r.Added, e.Added, cmpopts.EquateNaNs(), cmpopts.EquateApprox(0, 1e-12)); d != "" {
		t.Error(d)
	}
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	records, truth := clitest.ReadCSV(t, out), clitest.ReadCSV(t, data)
	if d := cmp.Diff([]string{"row", "ash", "elm", "oak", "predicted_class"}, records[0]); d != "" {
		t.Fatal(d)
	}
	right := 0.0
	for i, record := range records[1:] {
		shares := clitest.Numbers(t, record[1:4])
		if best := slices.Max(shares); shares[slices.Index(records[0], record[4])-1] != best {
			t.Errorf("row %d: %q", i, record)
		}
		if record[4] == truth[i+1][2] {
			right++
		}
	}
	if got := e.Added.Model.Classes.Accuracy.Mean; math.Abs(got-right/120) > 1e-12 || got < 0.8 {
		t.Errorf("accuracy %v, of predictions %v", got, right/120)
	}
	text := cmdtest.Works(t, "evaluate", "--model", model, "--data", data, "--labels", "class", "--confusion")
	for _, part := range []string{"Accuracy", "Mean recall", "Mean Jaccard", "Log loss", "Confusion matrix",
		"true  ash  elm  oak"} {
		if !strings.Contains(text, part) {
			t.Errorf("without %q: %s", part, text)
		}
	}
	if text := cmdtest.Works(t, "model", "show", model); !slices.Contains(strings.Fields(text), "classes") ||
		!strings.Contains(text, "Accuracy") {
		t.Error(text)
	}
	npz := filepath.Join(dir, "p.npz")
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", npz)
	values, _ := clitest.Arrays(t, npz)
	for i, v := range values["predicted_class"] {
		if records[0][int(v)+1] != records[i+1][4] {
			t.Errorf("row %d: class %v in .npz, %s in CSV", i, v, records[i+1][4])
		}
	}
	if len(values["predicted_class"]) != 120 {
		t.Errorf("%d classes in .npz", len(values["predicted_class"]))
	}
}

// TestScaleFromTrainingToPrediction is the same for a scale with exact numbers and groups.
func TestScaleFromTrainingToPrediction(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, model, out := cmdtest.Write(t, dir, "people.csv", people()), filepath.Join(dir, "m.coppice"),
		filepath.Join(dir, "p.csv")
	var r results.Result
	cmdtest.JSON(t, &r, byRF(data, append(inPeople, "--model-out", model)...)...)
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	records, truth := clitest.ReadCSV(t, out), clitest.ReadCSV(t, data)
	header := records[0]
	if d := cmp.Diff([]string{"21", "expected", "median", "mode"}, header[len(header)-4:]); d != "" {
		t.Fatal(d)
	}
	var errors [3]float64
	within := 0.0
	for i, record := range records[1:] {
		predicted, age := clitest.Numbers(t, record[len(record)-3:]), clitest.Numbers(t, truth[i+1][3:4])[0]
		for k, v := range predicted {
			errors[k] += math.Abs(v-age) / 90
		}
		if math.Abs(predicted[0]-age) <= 2+1e-9 {
			within += 1.0 / 90
		}
	}
	s := r.Added.Model.Scale
	for k, got := range []float64{s.Expected.MAE.Mean, s.Median.MAE.Mean, s.Mode.MAE.Mean} {
		if math.Abs(got-errors[k]) > 1e-9 {
			t.Errorf("MAE of %s: %v, of predictions %v", header[len(header)-3+k], got, errors[k])
		}
	}
	if math.Abs(s.Expected.Scores[2]-within) > 1e-9 {
		t.Errorf("cumulative score of 2: %v, of predictions %v", s.Expected.Scores[2], within)
	}
	var e evaluation
	cmdtest.JSON(t, &e, append([]string{"evaluate", "--model", model, "--data", data}, inPeople...)...)
	if d := cmp.Diff(r.Added, e.Added, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
	var alike evaluation
	cmdtest.JSON(t, &alike, "evaluate", "--model", model, "--data", data)
	if d := cmp.Diff(e.Added, alike.Added); d != "" {
		t.Errorf("without flags: %s", d)
	}
	other := cmdtest.Write(t, t.TempDir(), "other.csv", strings.Replace(people(), "age", "years", 1))
	bare := cmdtest.Run(t, "evaluate", "--model", model, "--data", other, "--label-columns", "years")
	if bare.Code != cli.ExitUsage || !strings.Contains(bare.Stderr, "with --values") {
		t.Errorf("exit code %d: %s", bare.Code, bare.Stderr)
	}
	if e := cmdtest.Run(t, append([]string{"evaluate", "--confusion", "--model", model, "--data", data},
		inPeople...)...); e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, "of classes") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
}

// TestFoldsOfGroups: each group is one fold and named; a list of the same folds gives the
// same models.
func TestFoldsOfGroups(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, out, split := cmdtest.Write(t, dir, "people.csv", people()), filepath.Join(dir, "p.csv"),
		filepath.Join(dir, "s.csv")
	var r, listed results.Result
	cmdtest.JSON(t, &r, byRF(data, append(inPeople, "--folds", "groups", "--predictions-out", out, "--split-out",
		split)...)...)
	if len(r.Folds) != 15 {
		t.Fatalf("%d folds", len(r.Folds))
	}
	lists := clitest.HeldOut(t, split)
	for k, f := range r.Folds {
		person, err := strconv.Atoi(strings.TrimPrefix(f.Group, "p"))
		if err != nil || f.HeldOut != 6 || len(lists[k]) != 6 || lists[k][0] != 6*person || lists[k][5] != 6*person+5 {
			t.Errorf("group %q tests %d rows, %v", f.Group, f.HeldOut, lists[k])
		}
	}
	cmdtest.JSON(t, &listed, byRF(data, append(inPeople, "--split", split)...)...)
	if listed.ModelDigest != r.ModelDigest {
		t.Errorf("the digest of folds of groups is %s, of listed ones %s", r.ModelDigest, listed.ModelDigest)
	}
	records := clitest.ReadCSV(t, out)
	at := slices.Index(records[0], "true_number")
	if at < 0 || len(records) != 91 || records[8][at] != clitest.ReadCSV(t, data)[8][3] {
		t.Errorf("predictions %q", records[0])
	}
}

// TestOverlappingSplits: each column is a split of its own, whose rows are tested.
func TestOverlappingSplits(t *testing.T) {
	dir := t.TempDir()
	data, out, again := cmdtest.Write(t, dir, "kinds.csv", clitest.Kinds()), filepath.Join(dir, "p.csv"),
		filepath.Join(dir, "again.csv")
	split := "row,first,second\n"
	for i := range 120 {
		split += fmt.Sprintf("%d,%d,%d\n", i, btoi(i%3 == 0), btoi(i%3 == 0 || i%5 == 0))
	}
	var r results.Result
	cmdtest.JSON(t, &r, byRF(data, "--labels", "class", "--split", cmdtest.Write(t, dir, "s.csv", split),
		"--predictions-out", out, "--split-out", again)...)
	if len(r.Folds) != 2 || r.Folds[0].HeldOut != 40 || r.Folds[1].HeldOut != 56 || r.HeldOut != 96 {
		t.Errorf("%+v", r.Folds)
	}
	if diff := cmp.Diff(strings.Replace(split, "first,second", "test0,test1", 1), cmdtest.Read(t, again)); diff != "" {
		t.Errorf("the split file is another one: %s", diff)
	}
	records := clitest.ReadCSV(t, out)
	if len(records) != 97 || records[1][0] != "0" || records[2][0] != "0" || records[1][1] != "0" ||
		records[2][1] != "1" || records[1][5+1] == "" {
		t.Errorf("%d rows: %q", len(records), records[:3])
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestLabelTypesRefuse: each fault of a user is named in one line.
func TestLabelTypesRefuse(t *testing.T) {
	testkit.WithoutRace(t)
	plain := "a,label_p,label_q\n1,1,0\n2,0,1\n3,1,0\n4,0,1\n"
	train := "train --local --algorithm rf --data @/"
	ages := train + "p.csv --labels age --sigma 2 --drop who"
	for _, test := range []refusal{
		{name: "a range that does not cover", files: map[string]string{"p.csv": people()}, args: ages + " --range 0:9",
			code: 1, says: []string{"p.csv", "row 3", "outside the range 0 to 9"}},
		{name: "a range of other labels", files: map[string]string{"x.csv": plain}, args: train + "x.csv --range 0:5",
			code: 1, says: []string{"x.csv", "2 labels", "0:5 has 6 numbers"}},
		{name: "a range of classes", files: map[string]string{"x.csv": plain}, args: train +
			"x.csv --labels class --range 0:1", code: 2, says: []string{"--range", "classes"}},
		{name: "values without a range", files: map[string]string{"x.csv": plain}, args: train + "x.csv --values a", code: 2,
			says: []string{"--values", "--range"}},
		{name: "a group column that lacks", files: map[string]string{"p.csv": people()}, args: ages +
			" --range 0:21 --groups person", code: 1, says: []string{"p.csv", "--groups", `"person"`, "from, to"}},
		{name: "turned intervals", files: map[string]string{"p.csv": people()}, args: ages +
			" --range 0:21 --intervals to,from", code: 1, says: []string{"p.csv", "row 0",
			"begins at 1.5, which is above its end, 0"}},
		{name: "one interval", files: map[string]string{"p.csv": people()}, args: ages + " --range 0:21 --intervals to",
			code: 2, says: []string{"--intervals", "two columns"}},
		{name: "folds of no groups", files: map[string]string{"x.csv": plain}, args: train + "x.csv --folds groups", code: 2,
			says: []string{"group_folds", "--groups"}},
		{name: "folds of groups and a split", files: map[string]string{"x.csv": plain, "s.csv": "row,fold\n"}, args: train +
			"x.csv --folds groups --split @/s.csv", code: 2, says: []string{"--split", "folds"}},
		{name: "a split with a 2", files: map[string]string{"x.csv": plain, "s.csv": "row,a\n0,1\n1,0\n2,2\n3,0\n"},
			args: train + "x.csv --split @/s.csv", code: 1, says: []string{"s.csv", "line 4", `"a" is "2"`}},
		{name: "a split that tests all", files: map[string]string{"x.csv": plain, "s.csv": "row,a\n0,1\n1,1\n2,1\n3,1\n"},
			args: train + "x.csv --split @/s.csv", code: 1, says: []string{"s.csv", `"a" tests every sample`}},
	} {
		t.Run(test.name, func(t *testing.T) { cmdtest.Refused(t, test.files, test.args, test.code, test.says) })
	}
}

// refusal is a command that is refused: see refused.
type refusal struct {
	name  string
	files map[string]string
	args  string
	code  int
	says  []string
}

// TestTypesOnACluster: a dataset keeps the types of its labels, folds of groups and
// overlapping splits are trained as here, and a name with other groups is refused.
func TestTypesOnACluster(t *testing.T) {
	t.Setenv("COPPICE_SERVER", cmdtest.Start(t, 1, 2).Servers())
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "people.csv", people())
	cmdtest.Works(t, append([]string{"dataset", "import", "--data", data}, inPeople...)...)
	var set struct {
		LabelType *dataset.LabelType `json:"label_type"`
		Groups    []any
		Intervals bool `json:"has_intervals"`
		Values    bool `json:"has_values"`
	}
	cmdtest.JSON(t, &set, "dataset", "show", "people")
	if set.LabelType == nil || set.LabelType.Scale == nil || len(set.Groups) != 15 || !set.Intervals || !set.Values {
		t.Errorf("%+v", set)
	}
	var here, there, fetched results.Result
	forest := []string{"--algorithm", "rf", "--set", "trees=5", "--folds", "groups"}
	cmdtest.JSON(t, &here, byRF(data, append(inPeople, "--folds", "groups")...)...)
	cmdtest.JSON(t, &there, append([]string{"train", "--dataset", "people", "--name", "groups"}, forest...)...)
	cmdtest.JSON(t, &fetched, append([]string{"train", "--local", "--dataset", "people"}, forest...)...)
	for _, r := range []results.Result{there, fetched} {
		if d := cmp.Diff(here.Added, r.Added); d != "" || r.ModelDigest != here.ModelDigest ||
			r.Folds[3].Group != here.Folds[3].Group {
			t.Errorf("model %s, here %s: %s", r.ModelDigest, here.ModelDigest, d)
		}
	}
	var one modelShown
	model := filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, "model", "download", "groups/3", "--out", model)
	cmdtest.JSON(t, &one, "model", "show", model)
	if one.Group != here.Folds[3].Group || !strings.Contains(one.Repeat, "--folds groups") {
		t.Errorf("group %q, again by %s", one.Group, one.Repeat)
	}
	e := cmdtest.Run(t, "dataset", "import", "--data", data, "--name", "people", "--labels", "age", "--sigma", "2",
		"--range", "0:21", "--values", "age", "--intervals", "from,to", "--drop", "who")
	if e.Code != cli.ExitFailed || !strings.Contains(e.Stderr, "with other groups") {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	split := "row,a,b\n"
	for i := range 120 {
		split += fmt.Sprintf("%d,%d,%d\n", i, btoi(i%3 == 0), btoi(i%4 == 0))
	}
	kinds, list := cmdtest.Write(t, dir, "kinds.csv", clitest.Kinds()), cmdtest.Write(t, dir, "s.csv", split)
	cmdtest.JSON(t, &here, byRF(kinds, "--labels", "class", "--split", list)...)
	cmdtest.JSON(t, &there, "train", "--data", kinds, "--labels", "class", "--algorithm", "rf", "--set", "trees=5",
		"--split", list)
	if d := cmp.Diff(here.Added, there.Added, cmpopts.EquateNaNs()); d != "" || here.ModelDigest != there.ModelDigest {
		t.Errorf("model %s, here %s: %s", there.ModelDigest, here.ModelDigest, d)
	}
}

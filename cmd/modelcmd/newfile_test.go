package modelcmd

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TestOwnFile: predict and evaluate read the file that a model was trained on as training did,
// without a flag, and find each row again.
func TestOwnFile(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range []struct {
		name, text, ending string
		flags              []string
		note               string
	}{
		{"dropped by name", clitest.PeopleFile([]string{"id", "x1", "x2", "label_a", "label_b"}, ",", ".", true), "csv",
			[]string{"--drop", "id"}, "--drop id"},
		{"dropped words by position", clitest.PeopleFile([]string{"who", "word", "x1", "x2", "label_a", "label_b"}, ",", ".",
			true), "csv", []string{"--drop", "0:1"}, "--drop who,word"},
		{"dropped twins", clitest.PeopleFile([]string{"x1'", "x1", "x2", "label_a", "label_b"}, ",", ".", true), "csv",
			[]string{"--drop", "0"}, ""},
		{"row names", clitest.PeopleFile([]string{"x1", "who", "x2", "label_a", "label_b"}, ",", ".", true), "csv",
			[]string{"--row-names", "who"}, "--row-names who"},
		{"chosen features", clitest.PeopleFile([]string{"id", "who", "x1", "x2", "label_a", "label_b"}, ",", ".", true),
			"csv", []string{"--feature-columns", "x2,x1"}, "--drop id,who"},
		{"classes", clitest.PeopleFile([]string{"id", "x1", "mood", "x2"}, ",", ".", true), "csv",
			[]string{"--labels", "class", "--label-columns", "mood", "--drop", "id"}, "--labels class --drop id"},
		{"ages", clitest.PeopleFile([]string{"age", "x1", "family", "x2", "half"}, ",", ".", true), "csv",
			[]string{"--labels", "age", "--sigma", "2", "--range", "15:40", "--label-columns", "age", "--values", "half",
				"--groups", "family"}, "--labels age --sigma 2 --range 15:40 --values half"},
		{"counts", clitest.PeopleFile([]string{"n_a", "n_b", "x1", "x2"}, ",", ".", true), "csv",
			[]string{"--labels", "counts", "--label-prefix", "n_"}, "--labels counts"},
		{"divided", clitest.PeopleFile([]string{"n_a", "n_b", "x1", "x2"}, ",", ".", true), "csv",
			[]string{"--normalize", "--label-columns", "n_a,n_b"}, "--normalize"},
		{"decimal commas in quotes", strings.ReplaceAll(clitest.PeopleFile([]string{"x1", "x2", "label_a", "label_b"}, "@",
			",", true), "@", ";"), "csv", []string{"--decimal", ",", "--delimiter", ";"}, "--delimiter ';' --decimal ,"},
		{"thousands", clitest.PeopleFile([]string{"x1", "big", "label_a", "label_b"}, ";", ".", true), "csv",
			[]string{"--thousands", ","}, "--thousands ,"},
		{"thousands and decimals", strings.NewReplacer(",", "'", ".", ",").
			Replace(clitest.PeopleFile([]string{"x1", "big", "label_a", "label_b"}, ";", ".", true)), "csv",
			[]string{"--decimal", ",", "--thousands", "'"}, "--decimal , --thousands "},
		{"a category", clitest.PeopleFile([]string{"x1", "word", "x2", "mood"}, ",", ".", true), "csv", []string{"--labels",
			"class", "--label-columns", "mood", "--categories", "word"}, "--labels class --categories word"},
		{"without a header", clitest.PeopleFile([]string{"id", "x1", "family", "x2", "label_a", "label_b"}, ",", ".", false),
			"csv",
			[]string{"--label-columns", "4:5", "--drop", "0", "--groups", "2", "--header", "no"}, "--header no --drop 0"},
		{"libsvm", libsvmOf(clitest.PeopleFile([]string{"id", "x1", "x2", "label_a", "label_b"}, ",", ".", false)), "svm",
			[]string{"--drop", "0"}, "--drop 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			data, model, out := cmdtest.Write(t, dir, "people."+c.ending, strings.ReplaceAll(c.text, "x1'", "x1")),
				filepath.Join(dir, "m.model"), filepath.Join(dir, "p.csv")
			cmdtest.Works(t, clitest.NearestNeighbour(data, model, c.flags...)...)
			for _, args := range [][]string{{"predict", "--model", model, "--data", data, "--out", out},
				{"evaluate", "--model", model, "--data", data}} {
				e := cmdtest.Run(t, append(args, "-o", "json")...)
				if e.Code != cli.ExitOK {
					t.Fatalf("%s: exit code %d: %s", args[0], e.Code, e.Stderr)
				}
				if notes := checkOwn(t, args[0], e.Stdout); args[0] == "evaluate" && !strings.Contains(notes, c.note) {
					t.Errorf("it does not say %q: %s", c.note, notes)
				}
			}
			var shown struct {
				Reading map[string]any `json:"reading"`
				Repeat  string         `json:"repeat"`
			}
			cmdtest.JSON(t, &shown, "model", "show", model)
			for i, f := range c.flags {
				if key := strings.ReplaceAll(strings.TrimPrefix(f, "--"), "-", "_"); strings.HasPrefix(f, "--") &&
					shown.Reading[key] == nil || i > 0 && !strings.Contains(shown.Repeat, strings.Trim(f, ";")) {
					t.Errorf("model show lacks %s: %v, %s", f, shown.Reading, shown.Repeat)
				}
			}
		})
	}
}

// checkOwn: all rows are predicted, and each is what the file says. It returns the notes.
func checkOwn(t *testing.T, command, text string) string {
	t.Helper()
	var r struct {
		Rows     int      `json:"samples"`
		Notes    []string `json:"notes"`
		Measures map[string]struct {
			Mean float64 `json:"mean"`
		} `json:"measures"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if r.Rows != 24 {
		t.Errorf("%s: %d rows", command, r.Rows)
	}
	if kl := r.Measures["kl"].Mean; command == "evaluate" && !(math.Abs(kl) < 1e-6) {
		t.Errorf("the K-L is %v", kl)
	}
	return strings.Join(r.Notes, "\n")
}

// libsvmOf writes a CSV file whose last two columns are labels as a libsvm file.
func libsvmOf(text string) string {
	var b strings.Builder
	for _, line := range strings.Fields(text) {
		cells := strings.Split(line, ",")
		n := len(cells) - 2
		b.WriteString(strings.Join(cells[n:], ","))
		for i, v := range cells[:n] {
			fmt.Fprintf(&b, " %d:%s", i+1, v)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestNewFileAsTrained: a new file may lack what was dropped, may have it elsewhere, and flags decide
// otherwise.
func TestNewFileAsTrained(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "train.csv",
		"id,x1,x2,label_a,label_b\n901,1,2,0.2,0.8\n14,2,3,0.3,0.7\n55,3,1,0.5,0.5\n7,4,4,0.1,0.9\n")
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--drop", "id")...)
	want := "row,a,b\n0,0.2,0.8\n1,0.5,0.5\n"
	for name, text := range map[string]string{
		"as the file": "id,x1,x2\n1001,1,2\n1002,3,1\n", "without it": "x1,x2\n1,2\n3,1\n",
		"elsewhere": "x2,id,x1\n2,7,1\n1,8,3\n", "a word": "x2,id,x1\n2,q7,1\n1,q8,3\n",
	} {
		new := cmdtest.Write(t, dir, "new.csv", text)
		if got := clitest.Predicted(t, model, new); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	other := cmdtest.Write(t, dir, "other.csv", "nr,x1,x2\n1001,1,2\n1002,3,1\n")
	e := cmdtest.Run(t, "predict", "--model", model, "--data", other, "--out", "-")
	if e.Code == cli.ExitOK || !strings.Contains(e.Stderr, `unknown to the model: 1 ("nr"); --drop leaves columns out`) {
		t.Errorf("exit code %d: %s", e.Code, e.Stderr)
	}
	if got := clitest.Predicted(t, model, other, "--drop", "nr"); got != want {
		t.Errorf("following the advice: %s", got)
	}
}

// TestThousandsOfModels: flags decide about marks between thousands, and none contradicts the model's.
func TestThousandsOfModels(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", "a;label_x;label_y\n1.234,5;0,25;0,75\n7;0,5;0,5\n12.000;1;0\n")
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model, "--thousands", ".")...)
	want := "row,x,y\n0,1,0\n"
	if got := clitest.Predicted(t, model, cmdtest.Write(t, dir, "same.csv", "a\n12.000\n")); got != want {
		t.Errorf("as for training: %s", got)
	}
	for _, flags := range [][]string{{"--thousands", ","}, {"--decimal", "."}} {
		if got := clitest.Predicted(t, model, cmdtest.Write(t, dir, "other.csv", "a;b\n12000.0;1\n"),
			append(flags, "--drop", "b")...); got != want {
			t.Errorf("with %s: %s", flags, got)
		}
	}
}

// TestColumnOfTheModel: evaluate takes no other column for the class, or the age, that a model was trained on.
func TestColumnOfTheModel(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ column, other, flags string }{
		{"mood", "class", "--labels class --label-columns mood"}, {"mood", "target", "--labels class --label-columns mood"},
		{"label_mood", "class", "--labels class --label-columns label_mood"},
		{"target", "label", "--labels class"}, {"y_mood", "label", "--labels class"},
		{"years", "Age", "--labels age --sigma 2 --range 0:9 --label-columns years"},
	} {
		model := filepath.Join(dir, "m.model")
		file := func(name, column string) string {
			return cmdtest.Write(t, dir, name, "a,b,"+column+"\n1,2,0\n3,1,1\n2,2,0\n5,1,1\n")
		}
		cmdtest.Works(t, clitest.NearestNeighbour(file("train.csv", c.column), model, strings.Fields(c.flags)...)...)
		other := file("other.csv", c.other)
		e := cmdtest.Run(t, "evaluate", "--model", model, "--data", other)
		for _, part := range []string{"other.csv", fmt.Sprintf("%q", c.column), "--label-columns", c.other} {
			if e.Code != cli.ExitUsage || !strings.Contains(e.Stderr, part) {
				t.Errorf("%s for %s: exit code %d, no %q: %s%s", c.other, c.column, e.Code, part, e.Stdout, e.Stderr)
			}
		}
		var found evaluation
		cmdtest.JSON(t, &found, "evaluate", "--model", model, "--data", other, "--label-columns", c.other)
		cmdtest.JSON(t, &found, "evaluate", "--model", model, "--data", file("same.csv", strings.ToUpper(c.column)))
		both := cmdtest.Write(t, dir, "both.csv", "a,"+c.other+",b,"+c.column+"\n1,1,2,0\n3,0,1,1\n")
		cmdtest.JSON(t, &found, "evaluate", "--model", model, "--data", both, "--drop", c.other)
		if notes := strings.Join(found.Notes, "\n"); found.Rows != 2 ||
			!strings.Contains(notes, fmt.Sprintf("is read from column 3, %q", c.column)) {
			t.Errorf("%s and %s: %d rows, %s", c.column, c.other, found.Rows, notes)
		}
	}
}

// TestMissingWordsOfNewFiles: predict and evaluate say which words of a file they read as missing values, in text and
// in JSON.
func TestMissingWordsOfNewFiles(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	model := filepath.Join(dir, "m.model")
	cmdtest.Works(t, clitest.NearestNeighbour(cmdtest.Write(t, dir, "a.csv",
		"x1,x2,label_a,label_b\n1,2,.5,.5\n2,3,.25,.75\n4,4,.1,.9\n"), model, "--missing", "drop")...)
	for name, text := range map[string]string{
		"b.csv": "x1,x2,label_a,label_b\nnone,2,.5,.5\n2,3,.25,.75\n4,N/A,.1,.9\n",
		"b.svm": ".5,.5 1:none 2:2\n.25,.75 1:2 2:3\n.1,.9 1:4 2:N/A\n",
	} {
		file := cmdtest.Write(t, dir, name, text)
		for _, args := range [][]string{{"predict", "--model", model, "--data", file, "--out", filepath.Join(dir, "p.csv")},
			{"evaluate", "--model", model, "--data", file}} {
			said := cmdtest.Run(t, args...)
			var r struct{ Notes []string }
			cmdtest.JSON(t, &r, args...)
			for _, note := range []string{`"N/A" (1 sample) is read as missing`, `"none" (1 sample) is read as missing`} {
				if said.Code != cli.ExitOK || !strings.Contains(said.Stderr, file+": "+note+"\n") ||
					!slices.Contains(r.Notes, note) {
					t.Errorf("%s %s: exit code %d, %s %q lack %q", args[0], name, said.Code, said.Stderr, r.Notes, note)
				}
			}
		}
	}
}

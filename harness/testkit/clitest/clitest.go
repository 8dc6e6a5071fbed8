// Package clitest has files and command lines that the tests of several commands share.
package clitest

import (
	"archive/zip"
	"encoding/csv"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/client/contexts"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// TrainArgs is a command line that trains a small model in this process.
func TrainArgs(data string, more ...string) []string {
	return append(append([]string{"train", "--local", "--data", data}, cmdtest.Small...), more...)
}

// ReadCSV reads the records of a CSV file.
func ReadCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// Numbers parses texts as numbers.
func Numbers(t *testing.T, texts []string) (v []float64) {
	t.Helper()
	for _, s := range texts {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		v = append(v, x)
	}
	return v
}

// Moods is a table. Its labels follow from its features a to d, which differ in scale.
type Moods struct {
	Header []string
	Rows   [][]string
}

// NewMoods returns a table with n rows.
func NewMoods(n int) *Moods {
	m := &Moods{Header: []string{"a", "b", "c", "d", "label_happy", "label_sad", "label_angry"}}
	r := rand.New(rand.NewPCG(1, 1))
	for range n {
		x := []float64{r.Float64(), r.Float64(), r.Float64(), r.Float64()}
		happy, sad, angry := x[0]+.1, x[1]*x[1]+.1, x[2]/2+.1
		sum := happy + sad + angry
		var row []string
		for _, v := range []float64{3 * x[0], x[1], 10 * x[2], x[3], happy / sum, sad / sum, angry / sum} {
			row = append(row, fmt.Sprint(v))
		}
		m.Rows = append(m.Rows, row)
	}
	return m
}

// File writes the columns, called as header says, or without a header.
func (m *Moods) File(t interface {
	Helper()
	Fatal(...any)
}, dir, name string, header []string, columns ...int) string {
	t.Helper()
	var b strings.Builder
	if header != nil {
		fmt.Fprintln(&b, strings.Join(header, ","))
	}
	for _, row := range m.Rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, row[c])
		}
		fmt.Fprintln(&b, strings.Join(cells, ","))
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Trained writes the table as it is, trains a model on it and returns both files.
func (m *Moods) Trained(t *testing.T, dir string) (data, model string) {
	t.Helper()
	data, model = m.File(t, dir, "moods.csv", m.Header, 0, 1, 2, 3, 4, 5, 6), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, TrainArgs(data, "--model-out", model)...)
	return data, model
}

// Predicted returns the predictions of a model as CSV.
func Predicted(t *testing.T, model, data string, more ...string) string {
	t.Helper()
	return cmdtest.Works(t, append([]string{"predict", "--model", model, "--data", data, "--out", "-"}, more...)...)
}

// Output runs a real process that must succeed and returns what it printed.
func Output(t *testing.T, args ...string) string {
	t.Helper()
	cmd, stdout, stderr := cmdtest.Process(t, t.TempDir(), args...)
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Errorf("coppice %s: %v\n%s", strings.Join(args, " "), err, stderr)
	}
	return stdout.String()
}

// Cluster starts a coordinator and a worker, and makes commands ask them.
func Cluster(t *testing.T) {
	t.Helper()
	t.Setenv("COPPICE_SERVER", cmdtest.Start(t, 1, 1).Servers())
}

// Arrays reads the numbers and strings of a .npz file.
func Arrays(t *testing.T, path string) (numbers map[string][]float64, texts map[string][]string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	numbers, texts = make(map[string][]float64), make(map[string][]string)
	for _, f := range z.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		r, err := npy.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(f.Name, ".npy")
		if r.Kind == 'U' {
			texts[name], err = r.ReadStrings()
		} else {
			size := 1
			for _, n := range r.Shape {
				size *= n
			}
			numbers[name] = make([]float64, size)
			err = r.ReadFloats(numbers[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return numbers, texts
}

// Survey is a file as people have it, of rows with an id; rows 3 and 8 lack a value.
func Survey(rows int) string {
	var b strings.Builder
	b.WriteString("id;height;label_oak;label_elm\r\n")
	for i := range rows {
		height := strings.Replace(strconv.FormatFloat(float64(i*7%11)/8, 'g', -1, 64), ".", ",", 1)
		if i == 3 || i == 8 {
			height = "NA"
		}
		d := float64(i*7%11) / 16
		fmt.Fprintf(&b, "%d;%s;%s;%s\r\n", i, height, strings.Replace(fmt.Sprint(d), ".", ",", 1),
			strings.Replace(fmt.Sprint(1-d), ".", ",", 1))
	}
	return b.String()
}

// SurveyFolds assigns the survey's rows to two folds.
func SurveyFolds(t *testing.T, dir string) string {
	var b strings.Builder
	b.WriteString("row,fold\n")
	for i := range 40 {
		fmt.Fprintf(&b, "%d,%d\n", i, i/2%2)
	}
	return cmdtest.Write(t, dir, "split.csv", b.String())
}

// Kinds is a file of three classes that follow from the features.
func Kinds() string {
	var b strings.Builder
	b.WriteString("x,y,class\n")
	for i := range 120 {
		fmt.Fprintf(&b, "%d,%d,%s\n", i*5%13, i%7, []string{"ash", "elm", "oak"}[i*5%13/5])
	}
	return b.String()
}

// NearestNeighbour are the arguments that train a model of the nearest neighbour, which predicts of each row of
// its file the row's own distribution.
func NearestNeighbour(data, model string, more ...string) []string {
	return append([]string{"train", "--local", "--algorithm", "aa-knn", "--set", "k=1", "--data", data, "--model-out",
		model}, more...)
}

// PeopleFile is a table with much that is no feature: ids, names, groups, a word, ages.
func PeopleFile(columns []string, delimiter, decimal string, header bool) string {
	var b strings.Builder
	if header {
		fmt.Fprintln(&b, strings.Join(columns, delimiter))
	}
	for i := range 24 {
		share := float64(1+i%7) / 8
		of := map[string]string{
			"id": fmt.Sprint(1000 - i), "who": fmt.Sprintf("person-%d", i), "family": fmt.Sprintf("f%d", i%4), "word": "w" +
				strings.Repeat("x", i%3),
			"x1": fmt.Sprint(float64(i*5%24) / 4), "x2": fmt.Sprint(float64(i*7%24) + .5), "age": fmt.Sprint(20 + i%9),
			"mood":    []string{"calm", "sad", "wild"}[i%3],
			"label_a": fmt.Sprint(share), "label_b": fmt.Sprint(1 - share), "n_a": fmt.Sprint(1 + i%3), "n_b": fmt.Sprint(2 +
				i%2), "half": fmt.Sprint(float64(20+i%9) + .5), "big": fmt.Sprintf("%d,%03d", 1+i%5, i*37%1000),
		}
		for k, c := range columns {
			if k > 0 {
				b.WriteString(delimiter)
			}
			b.WriteString(strings.ReplaceAll(of[strings.TrimRight(c, "'")], ".", decimal))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// HeldOut lists the rows of each fold or split of a split file.
func HeldOut(t *testing.T, path string) (lists [][]int) {
	t.Helper()
	records := ReadCSV(t, path)
	for _, record := range records[1:] {
		row, err := strconv.Atoi(record[0])
		if err != nil {
			t.Fatal(err)
		}
		for k, field := range record[1:] {
			switch records[0][1] {
			case "fold":
				if field == "" {
					continue
				}
				if k, err = strconv.Atoi(field); err != nil {
					t.Fatal(err)
				}
			default:
				if field != "1" {
					continue
				}
			}
			for len(lists) <= k {
				lists = append(lists, nil)
			}
			lists[k] = append(lists[k], row)
		}
	}
	return lists
}

// LastLine returns the last line of a log, with its time cut off.
func LastLine(t *testing.T, path string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(cmdtest.Read(t, path)), "\n")
	_, line, _ := strings.Cut(lines[len(lines)-1], " ")
	return line
}

var updateCommands = flag.Bool("update-commands", false, "write the generated tables of docs anew")

// Generated checks the text between two lines of a page. With -update-commands it writes the text.
func Generated(t *testing.T, page, first, last, want string) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), first)
	_, tail, also := strings.Cut(rest, last)
	if !ok || !also {
		t.Fatalf("%s has no lines %q and %q", page, first, last)
	}
	text := head + first + "\n" + want + last + tail
	if text == string(b) {
		return
	}
	if !*updateCommands {
		t.Fatalf("the tables of %s differ from the code; write them with go test -run %s -update-commands", page, t.Name())
	}
	if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Contexts gives a test a file of contexts, and returns its path.
func Contexts(t *testing.T, list ...contexts.Context) *contexts.File {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	f := &contexts.File{Path: contexts.DefaultPath()}
	for _, c := range list {
		if err := f.Set(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	return f
}

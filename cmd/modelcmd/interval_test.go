package modelcmd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/read"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// noisy is a file of distributions over two labels with noise, so that no two residuals are equal.
func noisy(rows int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 7))
	var b strings.Builder
	b.WriteString("name,x,z,label_up,label_down\n")
	for i := range rows {
		x, z := r.Float64(), r.Float64()
		up := min(max(.2+.6*x+.1*r.NormFloat64(), .01), .99)
		fmt.Fprintf(&b, "s%d,%v,%v,%v,%v\n", i, x, z, up, 1-up)
	}
	return b.String()
}

// ends returns the columns of a label in a file of predictions: prediction, low and high.
func ends(t *testing.T, records [][]string, label string) (values [][3]float64) {
	t.Helper()
	var at [3]int
	for i, column := range []string{label, label + "_low", label + "_high"} {
		if at[i] = slices.Index(records[0], column); at[i] < 0 {
			t.Fatalf("no column %s in %v", column, records[0])
		}
	}
	for _, record := range records[1:] {
		v := clitest.Numbers(t, []string{record[at[0]], record[at[1]], record[at[2]]})
		values = append(values, [3]float64(v))
	}
	return values
}

// TestIntervalsOfHeldOutSamples: with the file that the model was trained on, the half widths are the order statistics
// of the residuals of exactly the samples that --predictions-out has.
func TestIntervalsOfHeldOutSamples(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	lines := strings.SplitAfter(noisy(120, 1), "\n")
	lines[31] = "s30,,0.5,0.5,0.5\n" // other samples keep their row numbers
	data := cmdtest.Write(t, dir, "set.csv", strings.Join(lines, ""))
	later := cmdtest.Write(t, dir, "later.csv", noisy(40, 2))
	model, held, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "held.csv"), filepath.Join(dir, "p.csv")
	for _, how := range [][]string{{"--test-fraction", "0.3"}, {"--folds", "4", "--fold", "2"},
		{"--test-fraction", "0.2", "--train-fraction", "0.5"}} {
		var r results.Result
		cmdtest.JSON(t, &r, append([]string{"train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "k=4",
			"--missing", "drop", "--model-out", model, "--predictions-out", held}, how...)...)
		var p predicted
		cmdtest.JSON(t, &p, "predict", "--model", model, "--data", later, "--out", out, "--interval", "0.8", "--calibrate",
			data)
		if p.Intervals.From != heldOut || p.Intervals.Coverage != .8 {
			t.Fatalf("%v: %+v", how, p.Intervals)
		}
		if how[0] == "--test-fraction" && len(how) == 4 { // samples outside of the job are used, too
			if p.Intervals.Samples != 119-r.Rows.Train-r.Rows.Validation {
				t.Errorf("%d calibration samples; training has %+v", p.Intervals.Samples, r.Rows)
			}
			continue
		}
		records := clitest.ReadCSV(t, held)
		if p.Intervals.Samples != r.Rows.Test || r.Rows.Test != len(records)-1 {
			t.Errorf("%v: %d calibration samples, %d test samples", how, p.Intervals.Samples, r.Rows.Test)
		}
		for i, label := range []string{"up", "down"} {
			truth, predicted := slices.Index(records[0], "true_"+label), slices.Index(records[0], "predicted_"+label)
			var residuals []float64
			for _, record := range records[1:] {
				v := clitest.Numbers(t, []string{record[truth], record[predicted]})
				residuals = append(residuals, math.Abs(v[0]-v[1]))
			}
			slices.Sort(residuals)
			n := len(residuals)
			rank := (8*(n+1) + 9) / 10
			if got := p.Intervals.Values[i]; got.Label != label || got.Rank != rank || got.Samples != n ||
				math.Abs(got.HalfWidth-residuals[rank-1]) > 1e-7 {
				t.Errorf("%v, %s: %+v, want rank %d of %d: %v", how, label, got, rank, n, residuals[rank-1])
			}
		}
		all := clitest.ReadCSV(t, out)
		if diff := cmp.Diff([]string{"row", "up", "down", "up_low", "up_high", "down_low", "down_high"}, all[0]); diff != "" {
			t.Error(diff)
		}
		for i, label := range []string{"up", "down"} {
			half := p.Intervals.Values[i].HalfWidth
			for _, v := range ends(t, all, label) {
				if math.Abs(v[1]-max(v[0]-half, 0)) > 1e-6 || math.Abs(v[2]-min(v[0]+half, 1)) > 1e-6 {
					t.Errorf("%v ± %v is %v to %v", v[0], half, v[1], v[2])
				}
			}
		}
	}
}

// TestHeldOutSamplesAreFound: the data of a model are recognised whatever was done to missing values, if its folds are
// groups, and in a file of another format. A file that differs in one degree is another file.
func TestHeldOutSamplesAreFound(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	lines := strings.Split(strings.TrimSpace(noisy(80, 1)), "\n")
	lines[0] += ",who"
	for i := range lines[1:] {
		lines[i+1] += fmt.Sprintf(",p%d", i%4)
	}
	fields := strings.SplitN(lines[5], ",", 3)
	lines[5] = fields[0] + ",," + fields[2]
	data := cmdtest.Write(t, dir, "set.csv", strings.Join(lines, "\n")+"\n")
	other := cmdtest.Write(t, dir, "other.csv", strings.Replace(strings.Join(lines, "\n"), ",0.", ",0.1", 1)+"\n")
	packed, model := filepath.Join(dir, "set.npz"), filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, "dataset", "convert", "--data", data, "--missing", "0", "--drop", "who", "--out", packed)
	for _, c := range []struct {
		flags, calibrate string
		from             calibrationSamples
		samples          int
	}{
		{"--missing mean --drop who --test-fraction 0.25", data, heldOut, 20},
		{"--missing 0 --drop who --test-fraction 0.25", data, heldOut, 20},
		{"--missing 0 --drop who --test-fraction 0.25", packed, heldOut, 20},
		{"--missing mean --groups who --folds groups --fold 2", data, heldOut, 20},
		{"--missing 0 --drop who --test-fraction 0.25", other, allSamples, 80},
	} {
		cmdtest.Works(t, append([]string{"train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "k=3",
			"--model-out", model}, strings.Fields(c.flags)...)...)
		var p predicted
		cmdtest.JSON(t, &p, "predict", "--model", model, "--data", data, "--out", dir+"/p.csv", "--interval", "0.9",
			"--calibrate", c.calibrate)
		if p.Intervals.From != c.from || p.Intervals.Samples != c.samples {
			t.Errorf("%s, %s: %s, %d samples", c.flags, filepath.Base(c.calibrate), p.Intervals.From, p.Intervals.Samples)
		}
	}
	for trained, now := range map[string]string{"0": "drop", "drop": "0"} { // predict may read the file in another way
		var r results.Result
		cmdtest.JSON(t, &r, "train", "--local", "--data", data, "--algorithm", "aa-knn", "--set", "k=3", "--missing", trained,
			"--drop", "who", "--test-fraction", "0.25", "--model-out", model)
		var p predicted
		cmdtest.JSON(t, &p, "predict", "--model", model, "--data", data, "--missing", now, "--out", dir+"/p.csv",
			"--interval", "0.9", "--calibrate", data)
		if n := p.Intervals.Samples; p.Intervals.From != heldOut || n > r.Rows.Test || n < r.Rows.Test-1 {
			t.Errorf("--missing %s, then %s: %s, %d samples", trained, now, p.Intervals.From, n)
		}
	}
}

// TestIntervalArrays: a .npz file has the same ends as a CSV file, and without --interval files are as before.
func TestIntervalArrays(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, other := cmdtest.Write(t, dir, "set.csv", noisy(80, 1)), cmdtest.Write(t, dir, "other.csv", noisy(50, 2))
	model := filepath.Join(dir, "m.coppice")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model)...)
	args := []string{"predict", "--model", model, "--data", other, "--interval", "0.9", "--calibrate", other}
	text := cmdtest.Works(t, append(args, "--out", dir+"/p.csv")...)
	for _, says := range []string{"coverage 0.9 of each label", "50 calibration samples: all samples of " + other, "up 0."} {
		if !strings.Contains(text, says) {
			t.Errorf("the text lacks %q:\n%s", says, text)
		}
	}
	cmdtest.Works(t, append(args, "--out", dir+"/p.npz")...)
	lines := strings.Split(strings.TrimSpace(noisy(50, 2)), "\n")[1:]
	for i, line := range lines { // without the names of the samples
		lines[i] = line[strings.Index(line, ",")+1:]
	}
	nameless := cmdtest.Write(t, dir, "nameless.csv", strings.Join(lines, "\n"))
	text = cmdtest.Works(t, "predict", "--model", model, "--data", nameless, "--label-columns", "2,3", "--interval", "0.9",
		"--calibrate", nameless, "--out", dir+"/q.csv")
	if !strings.Contains(text, nameless+": features are matched with the model by position") {
		t.Errorf("the text does not say how the calibration samples are matched:\n%s", text)
	}
	numbers, _ := clitest.Arrays(t, dir+"/p.npz")
	records := clitest.ReadCSV(t, dir+"/p.csv")
	for c, label := range []string{"up", "down"} {
		for i, v := range ends(t, records, label) {
			if at := 2*i + c; float32(numbers["low"][at]) != float32(v[1]) || float32(numbers["high"][at]) != float32(v[2]) {
				t.Fatalf("row %d, %s: %v to %v, in the archive %v to %v", i, label, v[1], v[2], numbers["low"][at],
					numbers["high"][at])
			}
		}
	}
	cmdtest.Works(t, "predict", "--model", model, "--data", other, "--out", dir+"/q.npz")
	plain, _ := clitest.Arrays(t, dir+"/q.npz")
	if diff := cmp.Diff(plain["predictions"], numbers["predictions"]); diff != "" || plain["low"] != nil {
		t.Errorf("%s; %v", diff, plain["low"])
	}
}

// TestIntervalsOfNumbersAndTargets: the expected number has an interval, too; intervals stay in range and bounds.
func TestIntervalsOfNumbersAndTargets(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	ages := func(name string, seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 3))
		var b strings.Builder
		b.WriteString("x,age\n")
		for range 60 {
			x := r.Float64()
			fmt.Fprintf(&b, "%v,%v\n", x, math.Floor(min(max(20*x+2*r.NormFloat64(), 0), 20)))
		}
		return cmdtest.Write(t, dir, name, b.String())
	}
	data, other := ages("a.csv", 1), ages("b.csv", 2)
	flags := []string{"train", "--local", "--data", data, "--labels", "age", "--sigma", "2", "--range", "0:20"}
	predictWith := func(model string) [][]string {
		cmdtest.Works(t, "predict", "--model", model, "--data", other, "--out", dir+"/p.csv", "--interval", "0.9",
			"--calibrate", other)
		return clitest.ReadCSV(t, dir+"/p.csv")
	}
	for algorithm, column := range map[string]string{"aa-knn": "expected", "quadratic": "number"} {
		model := filepath.Join(dir, algorithm)
		cmdtest.Works(t, append(flags, "--algorithm", algorithm, "--model-out", model)...)
		records, covered := predictWith(model), 0
		truth := clitest.ReadCSV(t, other)
		for i, v := range ends(t, records, column) {
			age := clitest.Numbers(t, truth[i+1][1:])[0]
			if v[1] <= age && age <= v[2] {
				covered++
			}
			if v[1] < 0 || v[2] > 20 {
				t.Errorf("%s: %v", algorithm, v)
			}
		}
		if rank := 55; covered < rank { // ceil(61 * 0.9); ties cover more
			t.Errorf("%s: %d of 60 calibration samples are covered, want at least %d", algorithm, covered, rank)
		}
	}
	bounded := cmdtest.Write(t, dir, "songs.csv", songs())
	model := filepath.Join(dir, "songs.coppice")
	cmdtest.Works(t, "train", "--local", "--data", bounded, "--labels", "bounded", "--algorithm", "gld-knn", "--bounds",
		"-3:4,0:100", "--test-fraction", "0.5", "--model-out", model)
	var p predicted
	cmdtest.JSON(t, &p, "predict", "--model", model, "--data", bounded, "--out", dir+"/p.csv", "--interval", "0.9",
		"--calibrate", bounded)
	if p.Intervals.From != heldOut {
		t.Errorf("%+v", p.Intervals)
	}
	for label, bound := range map[string][2]float64{"valence": {-3, 4}, "arousal": {0, 100}} {
		for _, v := range ends(t, clitest.ReadCSV(t, dir+"/p.csv"), label) {
			if v[1] < bound[0] || v[2] > bound[1] || v[0] < v[1] || v[0] > v[2] {
				t.Errorf("%s: %v", label, v)
			}
		}
	}
}

// TestIntervalUsage: flags that contradict each other, and calibration samples that are not possible.
func TestIntervalUsage(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, few := cmdtest.Write(t, dir, "set.csv", noisy(80, 1)), cmdtest.Write(t, dir, "few.csv", noisy(8, 2))
	nameless := cmdtest.Write(t, dir, "no.csv", "x,z\n1,2\n")
	split := cmdtest.Write(t, dir, "split.csv", "row,fold\n"+func() (s string) {
		for i := range 80 {
			s += strconv.Itoa(i) + "," + strconv.Itoa(i%2) + "\n"
		}
		return s
	}())
	model, kept := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "split.coppice")
	cmdtest.Works(t, clitest.NearestNeighbour(data, model)...)
	cmdtest.Works(t, clitest.NearestNeighbour(data, kept, "--split", split, "--fold", "1")...)
	classes := cmdtest.Write(t, dir, "classes.csv", clitest.Kinds())
	ofClasses := filepath.Join(dir, "classes.coppice")
	cmdtest.Works(t, clitest.NearestNeighbour(classes, ofClasses, "--labels", "class")...)
	for _, c := range []struct {
		model, flags string
		code         int
		says         string
	}{
		{model, "--interval 0.9", cli.ExitUsage, "--interval needs --calibrate FILE"},
		{model, "--calibrate " + few, cli.ExitUsage, "--calibrate needs --interval"},
		{model, "--interval 90 --calibrate " + few, cli.ExitUsage, "want a coverage from 0.000001 to 0.999999, such as 0.9"},
		{model, "--interval 0 --calibrate " + few, cli.ExitUsage, "want a coverage from 0.000001"},
		{model, "--interval NaN --calibrate " + few, cli.ExitUsage, "want a coverage from 0.000001"},
		{model, "--interval 0.9 --calibrate -", cli.ExitUsage, "cannot be read from stdin"},
		{model, "--interval 0.9 --calibrate none.csv", cli.ExitFailed, "none.csv"},
		{model, "--interval 0.9 --calibrate " + few, cli.ExitFailed,
			"few.csv: intervals with coverage 0.9 need at least 9 calibration samples, but there are 8"},
		{model, "--interval 0.9 --calibrate " + nameless, cli.ExitFailed, "no.csv"},
		{model, "--interval 0.9 --calibrate " + data, cli.ExitFailed, "none of them were held out for testing"},
		{kept, "--interval 0.9 --calibrate " + data, cli.ExitFailed, "a split file decided which of them were held out"},
		{ofClasses, "--interval 0.9 --calibrate " + classes, cli.ExitUsage, "the model predicts classes"},
	} {
		on := data
		if c.model == ofClasses {
			on = classes
		}
		e := cmdtest.Run(t, append([]string{"predict", "--model", c.model, "--data", on, "--out", dir + "/p.csv"},
			strings.Fields(c.flags)...)...)
		if e.Code != c.code || !strings.Contains(e.Stderr, c.says) {
			t.Errorf("%s: exit code %d, %s", c.flags, e.Code, e.Stderr)
		}
	}
	if slices.Contains(cmdtest.Contents(t, dir), "p.csv") {
		t.Error("an error has left a file of predictions")
	}
}

// thirds writes the samples of a file into three files: for training, for calibration and for testing.
func thirds(t *testing.T, dir string, header string, lines []string, seed uint64) (paths [3]string) {
	t.Helper()
	order := rand.New(rand.NewPCG(seed, 5)).Perm(len(lines))
	var parts [3]strings.Builder
	for i := range parts {
		parts[i].WriteString(header)
	}
	for place, i := range order {
		parts[place*3/len(lines)].WriteString(lines[i])
	}
	for i := range parts {
		paths[i] = cmdtest.Write(t, dir, fmt.Sprintf("part%d.csv", i), parts[i].String())
	}
	return paths
}

// meanCoverage is the fraction of the test samples, over all labels and 20 splits, that intervals with coverage 0.9
// contain.
func meanCoverage(t *testing.T, header string, lines []string, train ...string) float64 {
	t.Helper()
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m.coppice"), filepath.Join(dir, "p.csv")
	covered, all := 0, 0
	for seed := range uint64(20) {
		paths := thirds(t, dir, header, lines, seed)
		cmdtest.Works(t, slices.Concat([]string{"train", "--local", "--data", paths[0], "--model-out", model}, train)...)
		var p predicted
		cmdtest.JSON(t, &p, "predict", "--model", model, "--data", paths[2], "--out", out, "--interval", "0.9",
			"--calibrate", paths[1])
		records, truth := clitest.ReadCSV(t, out), clitest.ReadCSV(t, paths[2])
		for k, label := range p.Classes {
			column := slices.Index(truth[0], "label_"+label)
			for i, v := range ends(t, records, label) {
				if d := float64(float32(clitest.Numbers(t, truth[i+1][column:column+1])[0])); v[1] <= d && d <= v[2] {
					covered++
				}
				all++
			}
			if p.Intervals.Values[k].Label != label {
				t.Fatalf("%+v", p.Intervals)
			}
		}
	}
	return float64(covered) / float64(all)
}

// TestCoverage: intervals with coverage 0.9 contain at least 88 % of the truths, and at most 92 % if no residuals are
// equal.
func TestCoverage(t *testing.T) {
	testkit.WithoutRace(t)
	lines := strings.SplitAfter(noisy(450, 3), "\n")
	got := meanCoverage(t, lines[0], lines[1:451], "--algorithm", "aa-knn", "--set", "k=5")
	t.Logf("generated: %.4f", got)
	if got < .88 || got > .92 {
		t.Errorf("coverage %.4f, want 0.88 to 0.92", got)
	}
}

// TestCoverageOfRealData: the same of public data. Many degrees of Movie and Music are equal, and so are residuals.
func TestCoverageOfRealData(t *testing.T) {
	testkit.WithoutRace(t)
	for _, c := range []struct {
		name string
		most float64
	}{{"SJAFFE.mat", .92}, {"Yeast_spo5.mat", .92}, {"Music.mat", 1}} {
		src, err := read.Open(testkit.Shared(t, "data/"+c.name), read.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var header string
		var lines []string
		err = importer.Scan(src, &importer.Options{}, "read", -1, func(r *dataset.Row, ch *importer.Checker) error {
			var b strings.Builder
			for i, v := range r.Values {
				fmt.Fprintf(&b, "%v,", float32(v))
				if len(lines) == 0 {
					header += fmt.Sprintf("x%d,", i)
				}
			}
			for i, d := range ch.Labels {
				if i > 0 {
					b.WriteString(",")
				}
				fmt.Fprint(&b, d)
				if len(lines) == 0 {
					header += fmt.Sprintf("label_l%d,", i)
				}
			}
			lines = append(lines, b.String()+"\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		got := meanCoverage(t, strings.TrimSuffix(header, ",")+"\n", lines, "--algorithm", "aa-knn")
		t.Logf("%s: %.4f", c.name, got)
		if got < .88 || got > c.most {
			t.Errorf("%s: coverage %.4f, want 0.88 to %v", c.name, got, c.most)
		}
	}
}

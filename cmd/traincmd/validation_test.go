package traincmd

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
	"github.com/coppice-ldl/coppice/internal/num"
)

// samples is a CSV file with samples whose labels follow from the features a and b and the level k. The columns follow
// order, which names them.
func samples(n int, seed uint64, order string) string {
	s := num.NewStream(num.NewKey(seed, "test/validation"), 0, 0)
	var b strings.Builder
	fmt.Fprintln(&b, order)
	for i := range n {
		row := map[string]string{"who": fmt.Sprintf("p%d-%d", seed, i/5), "w": fmt.Sprint(1 + i%2)}
		x, y, level := 2*s.Float64()-1, 2*s.Float64()-1, int(3*s.Float64())
		row["a"], row["b"], row["k"] = fmt.Sprintf("%.5f", x), fmt.Sprintf("%.5f", y), "pqr"[level:level+1]
		of := [3]float64{math.Exp(x + s.Float64()), math.Exp(y + s.Float64()), math.Exp(float64(level)/2 + s.Float64())}
		for c, v := range of {
			row[[]string{"label_x", "label_y", "label_z"}[c]] = fmt.Sprintf("%.9f", v/(of[0]+of[1]+of[2]))
		}
		var fields []string
		for _, name := range strings.Split(order, ",") {
			fields = append(fields, row[name])
		}
		fmt.Fprintln(&b, strings.Join(fields, ","))
	}
	return b.String()
}

const (
	inOrder = "a,b,k,who,w,label_x,label_y,label_z"
	moved   = "label_z,b,w,label_x,who,a,label_y,k"
	reading = "--categories k --drop who,w "
)

// TestValidationFile: the validation loss of the best step is the loss of the model on the file, as another command
// measures it, so the samples of the file are validated on and not trained on. Test folds stay as they are.
func TestValidationFile(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", samples(240, 1, inOrder))
	own := cmdtest.Write(t, dir, "v.csv", samples(60, 2, moved))
	model, curve := filepath.Join(dir, "m.model"), filepath.Join(dir, "c.csv")
	for _, algorithm := range []string{"ldlf", "sa-bfgs", "dldl", "aa-bp", "ldlboost", "ldlogitboost",
		"aoso-ldlogitboost"} {
		var r results.Result
		cmdtest.JSON(t, &r, strings.Fields("train --local "+reading+"--test-fraction 0.25 --no-screen --algorithm "+
			algorithm+" --data "+data+" --validation "+own+" --model-out "+model+" --curve-out "+curve)...)
		if r.Rows.Train != 180 || r.Rows.Validation != 60 || r.Rows.Test != 60 || r.RefitSteps != 0 || r.BestStep == 0 {
			t.Errorf("%s: samples %+v, best step %d, %d steps of a refit", algorithm, r.Rows, r.BestStep, r.RefitSteps)
		}
		var e struct {
			Measures map[string]struct{ Mean float64 }
		}
		cmdtest.JSON(t, &e, strings.Fields("evaluate --model "+model+" --data "+own)...)
		best := math.Inf(1)
		for _, line := range strings.Split(cmdtest.Read(t, curve), "\n")[1:] {
			var loss float64
			if fields := strings.Split(line, ","); len(fields) > 2 {
				if _, err := fmt.Sscan(fields[2], &loss); err == nil {
					best = min(best, loss)
				}
			}
		}
		if kl := e.Measures["kl"].Mean; !(math.Abs(kl-best) <= 1e-5*kl) {
			t.Errorf("%s: the lowest validation loss is %v, the model's K-L on the file %v", algorithm, best, kl)
		}
		if err := os.Remove(model); err != nil {
			t.Fatal(err)
		}
	}
	var splits []string
	var baselines []float64
	for i, more := range []string{"", " --validation " + own} {
		path := filepath.Join(dir, fmt.Sprintf("s%d.csv", i))
		var r results.Result
		cmdtest.JSON(t, &r, strings.Fields("train --local "+reading+"--folds 4 --no-screen --set steps=20 --data "+data+
			more+" --split-out "+path)...)
		kl, _ := r.MeanPredictor.Get("kl")
		splits, baselines = append(splits, cmdtest.Read(t, path)), append(baselines, kl.Mean)
	}
	if splits[0] != splits[1] {
		t.Error("a validation file changes the folds")
	}
	if !(math.Abs(baselines[0]-baselines[1]) < 1e-12) {
		t.Errorf("a validation file changes the mean baseline: K-L %v", baselines)
	}
}

// TestEnhancedValidation: validation samples of a file are enhanced together with the training samples. So the model is
// the model of two files with the distributions that dataset enhance makes of all samples.
func TestEnhancedValidation(t *testing.T) {
	dir := t.TempDir()
	const order = "a,b,label_x,label_y,label_z"
	rows, own := samples(80, 1, order), strings.SplitAfterN(samples(40, 2, order), "\n", 2)[1]
	both, enhanced := cmdtest.Write(t, dir, "both.csv", rows+own), filepath.Join(dir, "enhanced.csv")
	cmdtest.Works(t, "dataset", "enhance", both, "--method", "lp", "--binarise", "0.5", "--out", enhanced)
	lines := strings.SplitAfter(cmdtest.Read(t, enhanced), "\n")
	var digests []string
	for i, c := range []struct{ rows, own, more string }{
		{rows, order + "\n" + own, " --enhance lp --binarise 0.5"},
		{strings.Join(lines[:81], ""), lines[0] + strings.Join(lines[81:], ""), ""},
		{rows, order + "\n" + own, ""},
	} {
		var r results.Result
		cmdtest.JSON(t, &r, strings.Fields("train --local --no-screen --set steps=60 --data "+
			cmdtest.Write(t, dir, fmt.Sprintf("t%d.csv", i), c.rows)+" --validation "+
			cmdtest.Write(t, dir, fmt.Sprintf("v%d.csv", i), c.own)+c.more)...)
		if r.Rows.Train != 80 || r.Rows.Validation != 40 {
			t.Errorf("samples %+v", r.Rows)
		}
		digests = append(digests, r.ModelDigest)
	}
	if digests[0] != digests[1] || digests[0] == digests[2] {
		t.Errorf("digests of an enhancement, of its distributions, and without one: %v", digests)
	}
}

// TestOrderOfColumns: columns of the validation file are found by name.
func TestOrderOfColumns(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", samples(80, 1, inOrder))
	var digests []string
	for i, order := range []string{inOrder, moved} {
		var r results.Result
		own := cmdtest.Write(t, dir, fmt.Sprintf("v%d.csv", i), samples(40, 2, order))
		cmdtest.JSON(t, &r, strings.Fields("train --local "+reading+"--set steps=30 --data "+data+
			" --validation "+own)...)
		if r.Screening == nil || r.Screening.Samples != 40 {
			t.Errorf("screening %+v, want one on 40 samples", r.Screening)
		}
		digests = append(digests, r.ModelDigest)
	}
	if digests[0] != digests[1] {
		t.Errorf("the order of columns changes the model: %v", digests)
	}
}

// TestBestByValidationFile: algorithm best chooses the candidate with the lowest loss on the file. With the labels of
// other candidates' predictions, it chooses these.
func TestBestByValidationFile(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", samples(240, 1, inOrder))
	features := cmdtest.Write(t, dir, "f.csv", samples(60, 2, inOrder))
	for _, algorithm := range []string{"sa-bfgs", "structrf"} {
		model, own := filepath.Join(dir, algorithm+".model"), filepath.Join(dir, algorithm+".csv")
		cmdtest.Works(t, strings.Fields("train --local "+reading+"--algorithm "+algorithm+" --data "+data+
			" --model-out "+model)...)
		cmdtest.Works(t, strings.Fields("predict --model "+model+" --data "+features+" --out "+own)...)
		joined := join(t, cmdtest.Read(t, features), cmdtest.Read(t, own))
		var r results.Result
		cmdtest.JSON(t, &r, strings.Fields("train --local "+reading+"--algorithm best --set members=sa-bfgs,structrf "+
			"--data "+data+" --validation "+cmdtest.Write(t, dir, "own.csv", joined))...)
		for _, m := range r.Mixture.Members {
			if (m.Weight == 1) != (m.Member == algorithm) {
				t.Errorf("labels like predictions of %s: %s has the weight %v, and the loss %v", algorithm, m.Member, m.Weight,
					*m.OutOfFoldKL)
			}
		}
		if r.Mixture.Rows != 60 {
			t.Errorf("%d samples choose the best algorithm, want the samples of the file", r.Mixture.Rows)
		}
	}
}

// join returns samples with the labels of predictions.
func join(t *testing.T, of, predicted string) string {
	t.Helper()
	rows, labels := strings.Split(strings.TrimSpace(of), "\n"), strings.Split(strings.TrimSpace(predicted), "\n")
	head := strings.Split(labels[0], ",")
	var b strings.Builder
	b.WriteString(rows[0] + "\n")
	for i := 1; i < len(rows); i++ {
		fields, values := strings.Split(rows[i], ","), strings.Split(labels[i], ",")
		for c, name := range strings.Split(rows[0], ",")[5:] {
			at := slices.IndexFunc(head, func(h string) bool { return h == name || "label_"+h == name })
			if at < 0 {
				t.Fatalf("no %s in %v", name, head)
			}
			fields[5+c] = values[at]
		}
		b.WriteString(strings.Join(fields, ",") + "\n")
	}
	return b.String()
}

// TestValidationRefusals: what a validation file cannot have, and what cannot be combined with it, is refused.
func TestValidationRefusals(t *testing.T) {
	good := samples(20, 2, inOrder)
	line := func(row, column int, text string) string {
		lines := strings.Split(good, "\n")
		fields := strings.Split(lines[row+1], ",")
		fields[column] = text
		lines[row+1] = strings.Join(fields, ",")
		return strings.Join(lines, "\n")
	}
	for name, c := range map[string]struct {
		own, more string
		code      int
		says      []string
	}{
		"another label": {strings.Replace(good, "label_z", "label_q", 1), "",
			1, []string{"v.csv", "label 2", `"q"`, "t.csv"}},
		"no labels": {samples(20, 2, "a,b,k,who,w"), "", 1, []string{"v.csv", "no label columns"}},
		"a missing column": {samples(20, 2, "b,k,who,w,label_x,label_y,label_z"), "",
			1, []string{"v.csv", "feature 0", `"a"`, "t.csv"}},
		"another level":     {line(7, 2, "z"), "", 1, []string{"v.csv: row 7, column 2", "line 9", `"z"`, "training"}},
		"an unlabelled row": {line(7, 6, ""), "", 1, []string{"v.csv: row 7, column 6", "line 9", "--missing"}},
		"a wrong sum":       {line(7, 6, "0.9"), "", 1, []string{"v.csv: row 7 ", "sum to"}},
		"no rows":           {inOrder + "\n", "", 1, []string{"v.csv", "at least one validation sample"}},
		"all rows left out": {inOrder + "\n,,p,,,1,0,0\n", "--missing drop ", 1, []string{"v.csv", "missing values"}},
		"a group in both":   {line(7, 3, "p1-2"), "--groups who ", 1, []string{"v.csv: row 7 ", `"p1-2"`, "two files"}},
		"no weight": {samples(20, 2, "a,b,k,who,label_x,label_y,label_z"), "--weights w ",
			1, []string{"v.csv", `"w"`}},
		"an algorithm": {good, "--algorithm structrf ",
			2, []string{"structrf", "validation samples", "omit --validation"}},
		"a fraction":        {good, "--set validation_fraction=0.3 ", 2, []string{"validation_fraction", "--validation"}},
		"no validation":     {good, "--set validation_fraction=0 ", 2, []string{"validation", "--validation"}},
		"a refit":           {good, "--set refit=true ", 2, []string{"refit", "--validation"}},
		"a fixed smoothing": {good, "--algorithm pt-bayes --set smoothing=1 ", 2, []string{"smoothing", "--validation"}},
		"a fixed gamma":     {good, "--algorithm pt-svm --set gamma=1 ", 2, []string{"gamma", "--validation"}},
		"a member": {good, "--algorithm ensemble --set members=structrf,aa-knn ",
			2, []string{"ensemble", "--validation"}},
		"an enhancement": {good, "--algorithm aa-knn --set enhance=lp --set binarise=0.5 ",
			2, []string{"aa-knn", "--validation"}},
		"a folder":            {"", "--validation @/ ", 1, []string{"is a folder"}},
		"a test split":        {good, "--folds 30 ", 2, []string{"folds", "30 folds", "24 samples"}},
		"the file itself":     {"", "--validation @/t.csv ", 2, []string{"t.csv", "this is the data file"}},
		"standard input":      {"", "--validation - ", 2, []string{"--validation", "stdin"}},
		"no such file":        {"", "--validation @/none.csv ", 1, []string{"none.csv", "no such file"}},
		"without a data file": {"", "--validation @/t.csv --dataset some ", 2, []string{"--validation needs --data"}},
	} {
		t.Run(name, func(t *testing.T) {
			files, args := map[string]string{"t.csv": samples(24, 1, inOrder)}, "train --local --no-screen "+c.more
			if !strings.Contains(c.more, "--dataset") {
				args += "--data @/t.csv --categories k "
			}
			switch {
			case strings.Contains(c.more, "--groups"):
				args += "--drop w "
			case strings.Contains(c.more, "--weights"):
				args += "--drop who "
			case !strings.Contains(c.more, "--dataset"):
				args += "--drop who,w "
			}
			if !strings.Contains(c.more, "--validation") {
				files["v.csv"] = c.own
				args += "--validation @/v.csv"
			}
			cmdtest.Refused(t, files, args, c.code, c.says)
		})
	}
}

// TestValidationOfOtherModels: verify needs the file of validation samples, and refuses others. Neither file of a
// training calibrates intervals.
func TestValidationOfOtherModels(t *testing.T) {
	dir := t.TempDir()
	data := cmdtest.Write(t, dir, "t.csv", samples(80, 1, inOrder))
	own := cmdtest.Write(t, dir, "v.csv", samples(40, 2, inOrder))
	other := cmdtest.Write(t, dir, "u.csv", samples(40, 3, inOrder))
	more := cmdtest.Write(t, dir, "w.csv", samples(50, 4, inOrder))
	model, plain := filepath.Join(dir, "m.model"), filepath.Join(dir, "p.model")
	for path, with := range map[string]string{model: " --validation " + own, plain: ""} {
		cmdtest.Works(t, strings.Fields("train --local --no-screen "+reading+"--set steps=40 --test-fraction 0.2 --data "+
			data+
			with+" --model-out "+path)...)
	}
	for _, c := range []struct {
		args    string
		code    int
		verdict string
	}{
		{model + " --validation " + own, 0, "verified"}, {model + " --validation " + other, 1, "other data"},
		{model, cli.ExitUsage, ""}, {plain, 0, "verified"}, {plain + " --validation " + own, cli.ExitUsage, ""},
	} {
		e := cmdtest.Run(t, strings.Fields("model verify -o json --data "+data+" "+c.args)...)
		var v struct{ Verdict string }
		if e.Stdout != "" {
			if err := json.Unmarshal([]byte(e.Stdout), &v); err != nil {
				t.Fatal(err)
			}
		}
		if e.Code != c.code || v.Verdict != c.verdict {
			t.Errorf("verify %s: exit code %d, %q; want %d, %q: %s", c.args, e.Code, v.Verdict, c.code, c.verdict, e.Stderr)
		}
	}
	for path, code := range map[string]int{data: 1, own: 1, more: 0} {
		e := cmdtest.Run(t, strings.Fields("predict --model "+model+" --data "+data+" --interval 0.5 --out "+
			filepath.Join(dir, "p.csv")+" --calibrate "+
			path)...)
		if e.Code != code || code != 0 && !strings.Contains(e.Stderr, "the model was trained on") {
			t.Errorf("calibration by %s: exit code %d, %s", path, e.Code, e.Stderr)
		}
	}
}

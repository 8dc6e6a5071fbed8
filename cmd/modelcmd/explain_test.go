package modelcmd

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
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// explainable trains a model on a generated dataset, and returns the paths of both.
func explainable(t *testing.T, dir, kind, rows, algorithm string, settings ...string) (data, model string) {
	t.Helper()
	data, model = filepath.Join(dir, kind+".csv"), filepath.Join(dir, algorithm+".model")
	if _, err := os.Stat(data); err != nil {
		cmdtest.Works(t, "dataset", "generate", "--kind", kind, "--rows", rows, "--out", data)
	}
	args := []string{"train", "--local", "--data", data, "--algorithm", algorithm, "--model-out", model}
	for _, s := range settings {
		args = append(args, "--set", s)
	}
	cmdtest.Works(t, args...)
	return data, model
}

// TestExplainedSums: SHAP values of 100 samples and base values sum to the predicted probabilities of forests, and to
// the scores of boosters, whose softmax is the prediction.
func TestExplainedSums(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	for algorithm, settings := range map[string][]string{"rf": {"trees=10"}, "structrf": {"trees=10"},
		"ldlogitboost": {"rounds=8"}, "aoso-ldlogitboost": {"rounds=8"}, "ldlboost": {"rounds=8"}} {
		data, model := explainable(t, dir, "leaves", "100", algorithm, settings...)
		out := filepath.Join(dir, algorithm+".npz")
		var got explanation
		cmdtest.JSON(t, &got, "model", "explain", model, "--method", "shap", "--data", data, "--out", out)
		numbers, texts := clitest.Arrays(t, out)
		values, base, predicted := numbers["values"], numbers["base_values"], numbers["predictions"]
		const features, labels = 50, 10
		if len(values) != 100*features*labels || len(base) != labels || len(predicted) != 100*labels ||
			len(numbers["data"]) != 100*features || len(texts["feature_names"]) != features || got.SHAP.Samples != 100 {
			t.Fatalf("%s: %d values, %d base values, %d predictions", algorithm, len(values), len(base), len(predicted))
		}
		predictions := clitest.ReadCSV(t, predictedFile(t, dir, model, data))
		for i := range 100 {
			sums := slices.Clone(base)
			for f := range features {
				for c := range sums {
					sums[c] += values[(i*features+f)*labels+c]
				}
			}
			if strings.Contains(algorithm, "boost") {
				total := 0.0
				for c := range sums {
					sums[c] = math.Exp(sums[c])
					total += sums[c]
				}
				for c := range sums {
					sums[c] /= total
				}
			}
			for c, p := range clitest.Numbers(t, predictions[i+1][1:1+labels]) {
				if math.Abs(sums[c]-p) > 1e-6 || float32(p) != float32(predicted[i*labels+c]) {
					t.Fatalf("%s: sample %d, label %d: the sum is %v, the prediction %v", algorithm, i, c, sums[c], p)
				}
			}
		}
		mean := 0.0
		for i := range 100 {
			for c := range labels {
				mean += math.Abs(values[(i*features+7)*labels+c]) / 100
			}
		}
		if d := got.SHAP.Features[7].Mean - mean; math.Abs(d) > 1e-12 || got.SHAP.Difference > 1e-6 {
			t.Errorf("%s: the mean of feature 7 differs by %v, sums by %v", algorithm, d, got.SHAP.Difference)
		}
	}
}

// predictedFile predicts a file, and returns the path of the predictions.
func predictedFile(t *testing.T, dir, model, data string) string {
	out := filepath.Join(dir, "predicted.csv")
	cmdtest.Works(t, "predict", "--model", model, "--data", data, "--out", out)
	return out
}

// TestPlantedFeatures: in the dataset ordered with seed 1, features 0, 2 and 4 have great weights, features 1, 3 and 5
// have weights near 0, and features 7 to 49 do not matter. All methods find the first three, on samples that the model
// was not trained on.
func TestPlantedFeatures(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	_, model := explainable(t, dir, "ordered", "600", "structrf", "trees=15")
	held := filepath.Join(dir, "held.csv")
	all := strings.SplitAfter(cmdtest.Works(t, "dataset", "generate", "--kind", "ordered", "--rows", "700", "--out", "-"),
		"\n")
	if err := os.WriteFile(held, []byte(all[0]+strings.Join(all[601:], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for method, flags := range map[string][]string{"importance": nil, "permutation": {"--data", held, "--repeats", "3"},
		"shap": {"--data", held}} {
		var got explanation
		args := append([]string{"model", "explain", model, "--method", method}, flags...)
		cmdtest.JSON(t, &got, args...)
		rise := make([]float64, 50)
		for f := range rise {
			switch method {
			case "importance":
				rise[f] = got.Gains.Features[f].Gain
			case "permutation":
				rise[f] = got.Permuted.Features[f].KL.Mean
			default:
				rise[f] = got.SHAP.Features[f].Mean
			}
		}
		least, most := math.Inf(1), math.Inf(-1)
		for f, v := range rise {
			if f == 0 || f == 2 || f == 4 {
				least = min(least, v)
			} else {
				most = max(most, v)
			}
		}
		if least <= most {
			t.Errorf("%s: a planted feature has %v, another feature %v: %v", method, least, most, rise)
		}
		if method == "importance" {
			continue
		}
		again := cmdtest.Works(t, append(args, "--threads", "3", "-o", "json")...)
		if once := cmdtest.Works(t, append(args, "--threads", "1", "-o", "json")...); once != again {
			t.Errorf("%s depends on the number of threads", method)
		}
	}
}

// TestExplainText: each method has a default algorithm, a text and figures.
func TestExplainText(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, forest := explainable(t, dir, "artificial", "60", "structrf", "trees=3")
	_, boosted := explainable(t, dir, "artificial", "60", "ldlogitboost", "rounds=3")
	_, soft := explainable(t, dir, "artificial", "60", "ldlf", "steps=50")
	_, linear := explainable(t, dir, "artificial", "60", "sa-bfgs")
	_, neighbours := explainable(t, dir, "artificial", "60", "aa-knn")
	figures := filepath.Join(dir, "figures")
	for _, c := range []struct {
		args string
		says []string
	}{
		{forest, []string{"Importance of features in 3 trees", "feature 2", "label_1", "fraction of all gains"}},
		{boosted + " --top 1 --figures " + figures, []string{"in 9 trees", "2 more; --top 0 lists all"}},
		{forest + " --method permutation --data " + data + " --figures " + figures, []string{"on 60 samples", "10 repeats",
			" ± ", "without permutations: K-L "}},
		{forest + " --method permutation --samples 20 --repeats 1 --seed 9 --data " + data,
			[]string{"on 20 of 60 samples, drawn with seed 9, if", "1 repeat"}},
		{forest + " --method shap --data " + data + " --figures " + figures, []string{"SHAP values of 60 samples",
			"the predicted value of the label, less the expected value", "path-dependent", "at most "}},
		{boosted + " --method shap --row 5 --data " + data, []string{"sample 5", "base values: ", "before the softmax"}},
		{forest + " --method path --row 5 --tree 2 --data " + data, []string{"Path of sample 5 through tree 2 of 3 trees",
			"leaf ", "label_0 "}},
		{boosted + " --method path --row 5 --tree 4 --data " + data, []string{"which is about label_1", "adds "}},
		{soft + " --data " + data, []string{"Splits that divide 60 samples", "information"}},
		{soft + " --method path --row 5 --data " + data, []string{"output unit", "the most probable, with probability"}},
		{linear, []string{"Weights of ", "intercept: ", "softmax"}},
		{linear + " --figures " + figures + " --data " + data, []string{"standard deviation"}},
		{neighbours + " --repeats 2 --data " + data, []string{"Rise of the losses"}},
	} {
		text := cmdtest.Works(t, append([]string{"model", "explain"}, strings.Fields(c.args)...)...)
		for _, s := range c.says {
			if !strings.Contains(text, s) {
				t.Errorf("%s: want %q in:\n%s", c.args, s, text)
			}
		}
		shown := cmdtest.Works(t, append([]string{"model", "explain", "-o", "json"}, strings.Fields(c.args)...)...)
		if !json.Valid([]byte(shown)) {
			t.Errorf("%s: %s", c.args, shown)
		}
	}
	for _, name := range []string{"importance", "permutation", "shap", "shap-label-2", "weights-label-0"} {
		for _, ending := range []string{".svg", ".png", ".pdf"} {
			if info, err := os.Stat(filepath.Join(figures, name+ending)); err != nil || info.Size() < 1000 {
				t.Errorf("%s%s: %v", name, ending, err)
			}
		}
	}
	table := filepath.Join(dir, "shap.csv")
	cmdtest.Works(t, "model", "explain", forest, "--method", "shap", "--data", data, "--out", table)
	if lines := clitest.ReadCSV(t, table); len(lines) != 1+60*3 ||
		strings.Join(lines[0], ",") != "row,label,base_value,shap_feature 0,shap_feature 1,shap_feature 2" ||
		lines[4][0] != "1" || lines[4][1] != "label_0" {
		t.Errorf("%d lines, %v", len(lines), lines[0])
	}
}

// TestExplainRefuses: wrong flags and files give an error that names them, and nothing is written.
func TestExplainRefuses(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	data, forest := explainable(t, dir, "artificial", "40", "structrf", "trees=2")
	_, linear := explainable(t, dir, "artificial", "40", "sa-bfgs")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	model, err := os.ReadFile(forest)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := os.ReadFile(linear)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"empty.csv": "x0,x1,x2\n", "d.csv": string(text), "m": string(model),
		"l": string(weights), "no": "no model",
		"gap.csv":   "x0,x1,x2\n1,2,3\n1,,3\n",
		"other.csv": "a,b\n1,2\n", "labels.csv": "x0,x1,x2\n1,2,3\n4,5,6\n",
		"flipped": string(model[:200]) + "x" + string(model[201:])}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"@/m --method weights", cli.ExitUsage, []string{"--method weights", "structrf",
			"importance, shap, path, permutation"}},
		{"@/l --method shap --data @/d.csv", cli.ExitUsage, []string{"sa-bfgs", "weights, permutation"}},
		{"@/m --method shap", cli.ExitUsage, []string{"--data FILE"}},
		{"@/m --method path --data @/d.csv", cli.ExitUsage, []string{"--row"}},
		{"@/m --method path --data @/d.csv --row 40", cli.ExitFailed, []string{"d.csv", `"40"`, "counted from 0"}},
		{"@/m --method path --data @/gap.csv --missing drop --row 1", cli.ExitFailed, []string{"row 1 is left out"}},
		{"@/m --method path --data @/d.csv --row 1 --tree 2", cli.ExitUsage, []string{"--tree 2", "2 trees"}},
		{"@/m --method path --data @/d.csv --row 1 --tree -1", cli.ExitUsage, []string{"--tree"}},
		{"@/m --repeats 3", cli.ExitUsage, []string{"--repeats", "permutation"}},
		{"@/m --method permutation --repeats 0 --data @/d.csv", cli.ExitUsage, []string{"--repeats 0", "want 1"}},
		{"@/m --method permutation --samples 1 --data @/d.csv", cli.ExitUsage, []string{"--samples 1"}},
		{"@/m --method permutation --data @/labels.csv", cli.ExitFailed, []string{"labels.csv"}},
		{"@/m --method shap --data @/other.csv", cli.ExitFailed, []string{"other.csv", "2 features"}},
		{"@/m --method shap --data @/d.csv --range 0:3", cli.ExitUsage, []string{"--range", "permutation"}},
		{"@/m --method shap --data @/d.csv --out @/s.txt", cli.ExitUsage, []string{"s.txt", ".npz"}},
		{"@/m --method shap --data @/d.csv --out @/d.csv", cli.ExitUsage, []string{"reads that file"}},
		{"@/m --method shap --data @/d.csv --out @/no/s.npz", cli.ExitFailed, []string{"no/s.npz"}},
		{"@/m --method shap --data @/d.csv --row 1 --out @/s.npz", cli.ExitUsage, []string{"--out", "--row"}},
		{"@/m --method path --row 1 --data @/d.csv --figures @/f", cli.ExitUsage, []string{"--figures"}},
		{"@/m --data @/d.csv", cli.ExitUsage, []string{"--data", "importance"}},
		{"@/m --method shap --data @/empty.csv", cli.ExitFailed, []string{"empty.csv", "no samples"}},
		{"@/m --labels class", cli.ExitUsage, []string{"--labels", "--data FILE"}},
		{"@/m --method gain", cli.ExitUsage, []string{"--method"}},
		{"@/m --top -1", cli.ExitUsage, []string{"--top"}},
		{"@/no", cli.ExitFailed, []string{"no:"}},
		{"@/flipped", cli.ExitFailed, []string{"flipped"}},
		{"@/absent", cli.ExitFailed, []string{"absent"}},
	} {
		cmdtest.Refused(t, files, "model explain "+c.args, c.code, c.says)
	}
}

// TestExplainedNumber: SHAP values of ordinal labels sum to the expected number, of targets to the targets in their
// units. The features of a category are permuted together.
func TestExplainedNumber(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	var ages, targets strings.Builder
	ages.WriteString("colour,x,age\n")
	targets.WriteString("x,z,y_a,y_b\n")
	for i := range 60 {
		colour := []string{"red", "green", "blue"}[i%3]
		fmt.Fprintf(&ages, "%s,%d,%d\n", colour, i*7%10, 20+10*(i%3)+i*7%10)
		fmt.Fprintf(&targets, "%d,%d,%d,%g\n", i*7%10, i%4, 100_000+1000*(i*7%10), 0.001*float64(i%4))
	}
	data, model := cmdtest.Write(t, dir, "ages.csv", ages.String()), filepath.Join(dir, "ages.model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "age", "--sigma", "2", "--range", "0:60",
		"--categories", "colour", "--algorithm", "structrf", "--set", "trees=5", "--model-out", model)
	predictions := clitest.ReadCSV(t, predictedFile(t, dir, model, data))
	at := slices.Index(predictions[0], "expected")
	var got explanation
	cmdtest.JSON(t, &got, "model", "explain", model, "--method", "shap", "--data", data, "--row", "7")
	want := clitest.Numbers(t, predictions[8][at:at+1])[0]
	sum := *got.SHAP.Number
	for _, f := range got.SHAP.Sample.Features {
		sum += *f.Number
	}
	if math.Abs(sum-want) > 1e-4 || math.Abs(*got.SHAP.Sample.Number-want) > 1e-4 {
		t.Errorf("the values sum to %v, the output is %v, want %v", sum, *got.SHAP.Sample.Number, want)
	}
	got = explanation{}
	cmdtest.JSON(t, &got, "model", "explain", model, "--method", "permutation", "--data", data)
	if f := got.Permuted.Features; len(f) != 2 || f[0].Feature != "colour" || f[0].NumberMAE.Mean < 1 {
		t.Errorf("%+v", f)
	}
	data, model = cmdtest.Write(t, dir, "targets.csv", targets.String()), filepath.Join(dir, "targets.model")
	cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "bounded", "--algorithm", "rf", "--set", "trees=5",
		"--model-out", model)
	predictions = clitest.ReadCSV(t, predictedFile(t, dir, model, data))
	got = explanation{}
	cmdtest.JSON(t, &got, "model", "explain", model, "--method", "shap", "--data", data, "--row", "7")
	for c, want := range clitest.Numbers(t, predictions[8][1:]) {
		if v := got.SHAP.Sample.Output[c]; math.Abs(v-want) > 1e-7*math.Abs(want)+1e-9 {
			t.Errorf("target %d: the values sum to %v, want %v", c, v, want)
		}
	}
}

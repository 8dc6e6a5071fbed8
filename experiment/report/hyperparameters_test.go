package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/experiment/result"
)

// resolved gives the methods of a table the hyperparameters of a small algorithm, by method and dataset.
func resolved(t *result.Table) {
	on := func(method int, values string, datasets ...int) result.MethodValues {
		return result.MethodValues{Method: method, Datasets: datasets, Values: pairsOf(values)}
	}
	t.Hyperparameters = []result.Hyperparameters{
		{
			Algorithm: "ldlf", Names: []string{"preset", "trees", "depth", "outputs", "steps"},
			Methods: []result.MethodValues{
				on(0, "preset=auto trees=5 depth=9 outputs=64 steps=100", 0, 1),
				on(0, "preset=auto trees=5 depth=9 outputs=128 steps=100", 2, 3, 4),
				on(1, "preset=paper trees=5 depth=7 outputs=64 steps=100", 0, 1, 2, 3, 4),
			},
		},
		{Algorithm: "structrf", Names: []string{"preset", "trees"},
			Methods: []result.MethodValues{on(2, "preset=paper trees=50", 0, 1, 2, 4)}},
		{Algorithm: "sa-bfgs", Names: []string{"preset", "steps"},
			Methods: []result.MethodValues{on(3, "preset=auto steps=10", 0, 1, 2, 3, 4)}},
	}
}

// pairsOf reads values of hyperparameters.
func pairsOf(text string) map[string]string {
	var values map[string]string
	for _, pair := range strings.Fields(text) {
		if values == nil {
			values = make(map[string]string)
		}
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return values
}

// TestHyperparametersOfDatasets: JSON has the values of each method once for the datasets that share them.
func TestHyperparametersOfDatasets(t *testing.T) {
	table := sample()
	var got struct{ Hyperparameters []Used }
	if err := json.Unmarshal([]byte(written(t, table, "json", Options{})), &got); err != nil {
		t.Fatal(err)
	}
	all := []string{"Movie", "SJAFFE", "Yeast_alpha", "Yeast_spo5", "Music"}
	want := []Used{
		{Method: "ldlf", Algorithm: "ldlf", Preset: "auto", Datasets: all[:2],
			Values: pairsOf("preset=auto trees=5 depth=9 outputs=64 steps=100")},
		{Method: "ldlf", Algorithm: "ldlf", Preset: "auto", Datasets: all[2:],
			Values: pairsOf("preset=auto trees=5 depth=9 outputs=128 steps=100")},
		{Method: "ldlf_paper", Algorithm: "ldlf", Preset: "paper", Datasets: all,
			Values: pairsOf("preset=paper trees=5 depth=7 outputs=64 steps=100")},
		{Method: "structrf", Algorithm: "structrf", Preset: "paper", Datasets: []string{"Movie", "SJAFFE", "Yeast_alpha",
			"Music"}, Values: pairsOf("preset=paper trees=50")},
		{Method: "sa-bfgs", Algorithm: "sa-bfgs", Preset: "auto", Datasets: all, Values: pairsOf("preset=auto steps=10")},
	}
	if d := cmp.Diff(want, got.Hyperparameters); d != "" {
		t.Error(d)
	}
	contains(t, written(t, table, "table", Options{}), []string{"outputs by dataset 64"})
}

// TestHyperparametersOfManyMethods: more methods than columns stand in several tables. A method that is the same as
// another one has no column, members are listed by name, and candidates are counted.
func TestHyperparametersOfManyMethods(t *testing.T) {
	table := &result.Table{Name: "many", Measures: []string{"kl"},
		Datasets: []result.Dataset{{Name: "Movie", Rows: 10, Features: 2, Labels: 3, Folds: 2}}}
	h := result.Hyperparameters{
		Algorithm: "ensemble", Names: []string{"members", "folds"},
	}
	for i := range 6 {
		table.Methods = append(table.Methods, result.Method{Name: fmt.Sprintf("m%d", i), Algorithm: "ensemble"})
		h.Methods = append(h.Methods, result.MethodValues{Method: i, Datasets: []int{0},
			Values: pairsOf(fmt.Sprintf("members=rf:trees=%d,ldlf:depth=2 folds=5", i))})
		table.Runs = append(table.Runs, result.Run{Method: i, State: result.Missing})
	}
	table.Methods[0].Settings = pairsOf("members=rf:trees=0,ldlf:depth=2")
	table.Methods[2].Candidates = []string{"a", "b"}
	table.Methods[5].Same = "m4"
	h.Methods[1].Values = pairsOf("members=aa-knn folds=5")
	table.Hyperparameters = []result.Hyperparameters{h}
	var b bytes.Buffer
	if err := Write(&b, table, "table", Options{NoTimes: true}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(b.String(), "ensemble: hyperparameters\n")
	text, _, _ = strings.Cut(text, "\nMissing")
	want := `hyperparameter  m0        m1      m2            m3
--------------------------------------------------------
members         rf, ldlf  aa-knn  2 candidates  rf, ldlf

ensemble: hyperparameters, continued
hyperparameter  m4 = m5
------------------------
members         rf, ldlf

ensemble, other hyperparameters: folds=5.
`
	if d := cmp.Diff(want, text); d != "" {
		t.Error(d)
	}
}

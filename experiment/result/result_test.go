package result

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

func table() *Table {
	return &Table{
		Name:     "small",
		Datasets: []Dataset{{Name: "Movie", Rows: 10, Features: 2, Labels: 5, Folds: 2, Digest: "ab"}},
		Methods: []Method{{Name: "forest", Algorithm: "ldlf", Preset: "auto", Settings: map[string]string{"trees": "5",
			"depth": "7"}}, {Name: "mean", Algorithm: "mean"}},
		Measures: []string{"kl", "cosine"},
		Runs: []Run{
			{State: Done, Values: []float64{.1, math.NaN()}, Mean: []float64{.2, .9}, Rows: 5, Seconds: 1.5, Digest: "cd",
				Scores: []float64{.25, 1}, Confusion: [][]float64{{3, 1}, {0, 1}}},
			{Fold: 1, State: Failed, Error: "no methods"},
			{Method: 1, State: Missing},
			{Method: 1, Repeat: 2, State: Running},
		},
		Hyperparameters: []Hyperparameters{{
			Algorithm: "ldlf", Names: []string{"trees", "depth"},
			Methods: []MethodValues{{0, []int{0}, map[string]string{"trees": "5", "depth": "7"}}},
		}},
		Published: []Published{{Dataset: "Movie", Method: "a paper's own", Measure: "kl", Value: .08, Deviation: .01,
			Source: "Table 1"}},
	}
}

func TestJSON(t *testing.T) {
	var text strings.Builder
	if err := table().Encode(&text); err != nil {
		t.Fatal(err)
	}
	if text := text.String(); !strings.Contains(text, `"values":[0.1,null]`) ||
		!strings.Contains(text, `"mean":[0.2,0.9]`) {
		t.Error(text)
	}
}

func TestValidate(t *testing.T) {
	if err := table().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Table){
		"hyperparameters of ldlf: there is no method 2": func(t *Table) { t.Hyperparameters[0].Methods[0].Method = 2 },
		"hyperparameters of ldlf: there is no dataset 1": func(t *Table) {
			t.Hyperparameters[0].Methods[0].Datasets[0] = 1
		},
		"hyperparameters of ldlf: a list has 1 values, want 2": func(t *Table) {
			delete(t.Hyperparameters[0].Methods[0].Values, "depth")
		},
		`hyperparameters of ldlf: "leaves" is not in the list of names`: func(t *Table) {
			t.Hyperparameters[0].Methods[0].Values = map[string]string{"trees": "5", "leaves": "1"}
		},
		`hyperparameters of method "forest" on dataset "Movie" are listed twice`: func(t *Table) {
			h := &t.Hyperparameters[0]
			h.Methods = append(h.Methods, h.Methods[0])
		},
		"score 1 is 1.5":      func(t *Table) { t.Runs[0].Scores[1] = 1.5 },
		"line 1 has 1 fields": func(t *Table) { t.Runs[0].Confusion[1] = []float64{2} },
		"run 0: the confusion matrix has 21 classes, want at most 20: the table of the experiment is not valid": func(t *Table) {
			t.Runs[0].Confusion = make([][]float64, 21)
		},
		"dataset 0, counted from 0, has no name: the table of the experiment is not valid": func(t *Table) {
			t.Datasets[0].Name = ""
		},
		`two entries have the same name: method "mean": the table of the experiment is not valid`: func(t *Table) {
			t.Methods[0].Name = "mean"
		},
		`two entries have the same name: measure "kl": the table of the experiment is not valid`: func(t *Table) {
			t.Measures[1] = "kl"
		},
		"5 labels and 0 folds": func(t *Table) { t.Datasets[0].Folds = 0 },
		"run 2: there is no dataset 1, counted from 0: the table has 1 datasets": func(t *Table) {
			t.Runs[2].Dataset = 1
		},
		"run 2: there is no method -1, counted from 0: the table has 2 methods": func(t *Table) {
			t.Runs[2].Method = -1
		},
		"run 2: there is no fold 2, counted from 0: the dataset has 2 folds": func(t *Table) {
			t.Runs[2].Fold = 2
		},
		"run 2: want a repeat of at least 0, got -1: the table of the experiment is not valid": func(t *Table) {
			t.Runs[2].Repeat = -1
		},
		`run 2: unknown state "odd": want done, failed, missing or running: the table of the experiment is not valid`: func(
			t *Table) {
			t.Runs[2].State = "odd"
		},
		"run 1: the run is marked as failed, but has no error": func(t *Table) {
			t.Runs[1].Error = ""
		},
		"run 0: the run is done and has 1 values and 2 values of the mean baseline, want 2 of each": func(t *Table) {
			t.Runs[0].Values = []float64{1}
		},
		"missing and has 2 values": func(t *Table) { t.Runs[0].State = Missing },
		"NaN seconds":              func(t *Table) { t.Runs[0].Seconds = math.NaN() },
		"run 1 is listed twice, first as run 0: Movie, forest, fold 0: the table of the experiment is not valid": func(t *Table) {
			t.Runs[1].Fold = 0
		},
		"run 0: the run is done and has K-L values of 2 candidates, but its method has 0 candidates": func(t *Table) {
			t.Runs[0].CandidateKL = []float64{1, 2}
		},
		"run 1: the run is failed and has K-L values of 1 candidates, but its method has 1 candidates": func(t *Table) {
			t.Runs[1].CandidateKL, t.Methods[0].Candidates = []float64{1}, []string{"a"}
		},
		`no dataset "Music"`:                func(t *Table) { t.Published[0].Dataset = "Music" },
		`no measure "clark"`:                func(t *Table) { t.Published[0].Measure = "clark" },
		"published value 0 names no method": func(t *Table) { t.Published[0].Method = "" },
		"published value 0: want a finite number and a standard deviation of at least 0, got NaN ± 0.01": func(t *Table) {
			t.Published[0].Value = math.NaN()
		},
	} {
		one := table()
		change(one)
		if err := one.Validate(); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrTable) {
			t.Errorf("error %v, want %q", err, want)
		}
		if err := one.Encode(new(bytes.Buffer)); err == nil {
			t.Errorf("%q: it was encoded", want)
		}
	}
}

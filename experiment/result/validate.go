package result

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// ErrTable is what errors of Validate wrap.
var ErrTable = errors.New("the table of the experiment is not valid")

// Validate returns an error, which names the field at fault, if a name is missing or stands
// twice, an index is out of range, a list has the wrong length, or two runs are the same one.
func (t *Table) Validate() error {
	for _, check := range []func() error{t.checkNames, t.checkDatasets, t.checkRuns, t.checkPublished,
		t.checkHyperparameters} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", err, ErrTable)
		}
	}
	return nil
}

func (t *Table) checkNames() error {
	for _, list := range []struct {
		what  string
		names []string
	}{
		{"dataset", namesOf(t.Datasets, func(d *Dataset) string { return d.Name })},
		{"method", namesOf(t.Methods, func(r *Method) string { return r.Name })},
		{"measure", t.Measures},
	} {
		seen := make(map[string]bool, len(list.names))
		for i, name := range list.names {
			if name == "" {
				return fmt.Errorf("%s %d, counted from 0, has no name", list.what, i)
			}
			if seen[name] {
				return fmt.Errorf("two entries have the same name: %s %q", list.what, name)
			}
			seen[name] = true
		}
	}
	return nil
}

func namesOf[T any](list []T, of func(*T) string) []string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = of(&list[i])
	}
	return names
}

func (t *Table) checkDatasets() error {
	for i := range t.Datasets {
		d := &t.Datasets[i]
		if d.Rows < 0 || d.Features < 0 || d.Labels < 0 || d.Folds < 1 {
			return fmt.Errorf("dataset %q has %d samples, %d features, %d labels and %d folds, want at least 1 fold and no "+
				"negative number", d.Name, d.Rows, d.Features, d.Labels, d.Folds)
		}
		if d.Validation < 0 || len(d.Unvalidated) > 0 && d.Validation == 0 {
			return fmt.Errorf("dataset %q has %d validation samples, and %d methods that do not use them", d.Name, d.Validation,
				len(d.Unvalidated))
		}
		for _, method := range d.Unvalidated {
			if method < 0 || method >= len(t.Methods) {
				return fmt.Errorf("dataset %q: there is no method %d, counted from 0: the table has %d methods", d.Name, method,
					len(t.Methods))
			}
		}
		if d.Same != "" && !slices.ContainsFunc(t.Datasets[:i], func(of Dataset) bool {
			return of.Name == d.Same && of.Same == ""
		}) {
			return fmt.Errorf("dataset %q is marked as the same as %q, but no earlier dataset has that name", d.Name, d.Same)
		}
	}
	for i := range t.Methods {
		r := &t.Methods[i]
		if r.Same != "" && !slices.ContainsFunc(t.Methods[:i], func(of Method) bool {
			return of.Name == r.Same && of.Same == ""
		}) {
			return fmt.Errorf("method %q is marked as the same as %q, but no earlier method has that name", r.Name, r.Same)
		}
	}
	return nil
}

// place says which run of the table a run is.
type place struct{ dataset, method, repeat, fold int }

func (t *Table) checkRuns() error {
	seen := make(map[place]int, len(t.Runs))
	for i := range t.Runs {
		c := &t.Runs[i]
		if err := t.checkRun(c); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		p := place{dataset: c.Dataset, method: c.Method, repeat: c.Repeat, fold: c.Fold}
		if first, twice := seen[p]; twice {
			return fmt.Errorf("run %d is listed twice, first as run %d: %s", i, first, t.NameOf(c).String())
		}
		seen[p] = i
	}
	return nil
}

func (t *Table) checkRun(c *Run) error {
	switch {
	case c.Dataset < 0 || c.Dataset >= len(t.Datasets):
		return fmt.Errorf("there is no dataset %d, counted from 0: the table has %d datasets", c.Dataset, len(t.Datasets))
	case c.Method < 0 || c.Method >= len(t.Methods):
		return fmt.Errorf("there is no method %d, counted from 0: the table has %d methods", c.Method, len(t.Methods))
	case c.Repeat < 0:
		return fmt.Errorf("want a repeat of at least 0, got %d", c.Repeat)
	case c.Fold < 0 || c.Fold >= t.Datasets[c.Dataset].Folds:
		return fmt.Errorf("there is no fold %d, counted from 0: the dataset has %d folds", c.Fold,
			t.Datasets[c.Dataset].Folds)
	case len(t.Datasets[c.Dataset].Divisions) > 0 && c.Repeat*t.Datasets[c.Dataset].Folds+
		c.Fold >= len(t.Datasets[c.Dataset].Divisions):
		return fmt.Errorf("repeat %d and fold %d are outside the dataset's list of %d divisions", c.Repeat, c.Fold,
			len(t.Datasets[c.Dataset].Divisions))
	case c.Rows < 0 || !(c.Seconds >= 0 && c.Seconds <= math.MaxFloat64):
		return fmt.Errorf("want at least 0 test samples and 0 seconds, got %d test samples and %v seconds", c.Rows, c.Seconds)
	}
	return cmp.Or(t.checkState(c), c.checkBeside(), c.checkRecorded(t.Datasets[c.Dataset].Labels))
}

// checkBeside checks cumulative scores and the confusion matrix, if there are any.
func (c *Run) checkBeside() error {
	for i, v := range c.Scores {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("cumulative score %d is %v, want 0 to 1", i, v)
		}
	}
	if len(c.Confusion) > MaxConfusion {
		return fmt.Errorf("the confusion matrix has %d classes, want at most %d", len(c.Confusion), MaxConfusion)
	}
	for i, line := range c.Confusion {
		if len(line) != len(c.Confusion) {
			return fmt.Errorf("the confusion matrix has %d classes, but its line %d has %d fields", len(c.Confusion),
				i, len(line))
		}
		for j, v := range line {
			if !(v >= 0 && v <= math.MaxFloat64) {
				return fmt.Errorf("field %d of line %d of the confusion matrix is %v, want a finite number of at least 0", j, i, v)
			}
		}
	}
	return nil
}

// checkRecorded checks the curve and the predictions, if there are any, of a dataset with so many labels.
func (c *Run) checkRecorded(labels int) error {
	if c.State != Done && (c.Curve != nil || len(c.Predictions) > 0) {
		return fmt.Errorf("the run is %s, but has a learning curve or predictions", c.State)
	}
	if v := c.Curve; v != nil {
		n := len(v.Steps)
		if n == 0 || len(v.Training) != n || v.Validation != nil && len(v.Validation) != n {
			return fmt.Errorf("the learning curve has %d steps, %d training losses and %d validation losses, want as many "+
				"losses as steps, and at least one", n, len(v.Training), len(v.Validation))
		}
		for i := 1; i < n; i++ {
			if v.Steps[i] <= v.Steps[i-1] {
				return fmt.Errorf("the steps of the learning curve do not increase: step %d is %d, after %d", i, v.Steps[i],
					v.Steps[i-1])
			}
		}
	}
	for i := range c.Predictions {
		if p := &c.Predictions[i]; len(p.True) != labels || len(p.Predicted) != labels {
			return fmt.Errorf("prediction %d has %d true and %d predicted probabilities, want one of each for %d labels", i,
				len(p.True), len(p.Predicted), labels)
		}
	}
	return nil
}

func (t *Table) checkState(c *Run) error {
	want := 0
	switch c.State {
	case Done:
		want = len(t.Measures)
	case Failed:
		if c.Error == "" {
			return fmt.Errorf("the run is marked as failed, but has no error")
		}
	case Missing, Running:
	default:
		return fmt.Errorf("unknown state %q: want %s, %s, %s or %s", c.State, Done, Failed, Missing, Running)
	}
	if n := len(c.CandidateKL); n > 0 && (want == 0 || n != len(t.Methods[c.Method].Candidates)) {
		return fmt.Errorf("the run is %s and has K-L values of %d candidates, but its method has %d candidates; only "+
			"finished runs have such values", c.State, n, len(t.Methods[c.Method].Candidates))
	}
	if len(c.Values) != want || len(c.Mean) != want {
		return fmt.Errorf("the run is %s and has %d values and %d values of the mean baseline, want %d of each", c.State,
			len(c.Values), len(c.Mean), want)
	}
	return nil
}

func (t *Table) checkPublished() error {
	for i := range t.Published {
		p := &t.Published[i]
		dataset := slices.ContainsFunc(t.Datasets, func(d Dataset) bool { return d.Name == p.Dataset })
		switch {
		case !dataset:
			return fmt.Errorf("published value %d: the table has no dataset %q", i, p.Dataset)
		case !slices.Contains(t.Measures, p.Measure):
			return fmt.Errorf("published value %d: the table has no measure %q", i, p.Measure)
		case p.Method == "":
			return fmt.Errorf("published value %d names no method", i)
		case math.IsNaN(p.Value) || math.IsInf(p.Value, 0) || !(p.Deviation >= 0 && p.Deviation <= math.MaxFloat64):
			return fmt.Errorf("published value %d: want a finite number and a standard deviation of at least 0, got %v ± %v", i,
				p.Value, p.Deviation)
		}
	}
	return nil
}

func (t *Table) checkHyperparameters() error {
	type at struct{ method, dataset int }
	seen := make(map[at]bool)
	for i := range t.Hyperparameters {
		h := &t.Hyperparameters[i]
		for _, m := range h.Methods {
			if m.Method < 0 || m.Method >= len(t.Methods) {
				return fmt.Errorf("hyperparameters of %s: there is no method %d, counted from 0: the table has %d methods",
					h.Algorithm, m.Method, len(t.Methods))
			}
			for _, d := range m.Datasets {
				if d < 0 || d >= len(t.Datasets) {
					return fmt.Errorf("hyperparameters of %s: there is no dataset %d, counted from 0: the table has %d datasets",
						h.Algorithm, d, len(t.Datasets))
				}
				if seen[at{m.Method, d}] {
					return fmt.Errorf("hyperparameters of method %q on dataset %q are listed twice", t.Methods[m.Method].Name,
						t.Datasets[d].Name)
				}
				seen[at{m.Method, d}] = true
			}
			if len(m.Values) != len(h.Names) {
				return fmt.Errorf("hyperparameters of %s: a list has %d values, want %d", h.Algorithm, len(m.Values), len(h.Names))
			}
			for name := range m.Values {
				if !slices.Contains(h.Names, name) {
					return fmt.Errorf("hyperparameters of %s: %q is not in the list of names", h.Algorithm, name)
				}
			}
		}
	}
	return nil
}

// Encode writes the table as JSON. Equal tables give equal bytes.
func (t *Table) Encode(out io.Writer) error {
	if err := t.Validate(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(t)
}

// numbers are floats in JSON, or null if they are not finite.
type numbers []float64

func (n numbers) MarshalJSON() ([]byte, error) {
	list := make([]*float64, len(n))
	for i, v := range n {
		if v-v == 0 {
			v += 0 // no -0
			list[i] = &v
		}
	}
	return json.Marshal(list)
}

// plain is a Run without its methods.
type plain Run

// MarshalJSON implements json.Marshaler.
func (c Run) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		plain
		Values      numbers `json:"values,omitempty"`
		Mean        numbers `json:"mean,omitempty"`
		CandidateKL numbers `json:"candidate_kl,omitempty"`
	}{plain(c), c.Values, c.Mean, c.CandidateKL})
}

// MarshalJSON implements json.Marshaler.
func (c Curve) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Steps       []uint64 `json:"steps"`
		Training    numbers  `json:"training_loss"`
		Validation  numbers  `json:"validation_loss,omitempty"`
		BeforeRefit uint64   `json:"before_refit,omitempty"`
	}{c.Steps, c.Training, c.Validation, c.BeforeRefit})
}

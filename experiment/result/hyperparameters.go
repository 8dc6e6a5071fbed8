package result

import (
	"fmt"
	"slices"
)

// Hyperparameters are the hyperparameters of the methods of an algorithm. All folds of a dataset have the same.
type Hyperparameters struct {
	Algorithm string `json:"algorithm"`
	// Names lists the hyperparameters in the order of the algorithm's settings.
	Names []string `json:"names"`
	// Shared has the hyperparameters with the same value for all methods on all datasets.
	Shared map[string]string `json:"shared,omitempty"`
	// Methods has the other hyperparameters of each method, each dataset once.
	Methods []MethodValues `json:"methods"`
	// Paper has all hyperparameters of the preset paper on the datasets that support it.
	Paper []ValuesOn `json:"paper,omitempty"`
}

// MethodValues are values of a method.
type MethodValues struct {
	Row int `json:"method"` // index into Table.Rows
	ValuesOn
}

// ValuesOn are values of hyperparameters on some datasets.
type ValuesOn struct {
	Datasets []int             `json:"datasets"` // indexes into Table.Datasets
	Values   map[string]string `json:"values,omitempty"`
}

func (t *Table) checkHyperparameters() error {
	type at struct{ row, dataset int }
	seen := make(map[at]bool)
	for i := range t.Hyperparameters {
		h := &t.Hyperparameters[i]
		for _, m := range h.Methods {
			if m.Row < 0 || m.Row >= len(t.Rows) {
				return fmt.Errorf("hyperparameters of %s: there is no method %d, counted from 0: the table has %d methods", h.Algorithm, m.Row, len(t.Rows))
			}
			if err := h.check(&m.ValuesOn, len(t.Datasets), len(h.Names)-len(h.Shared)); err != nil {
				return err
			}
			for _, d := range m.Datasets {
				if seen[at{m.Row, d}] {
					return fmt.Errorf("hyperparameters of method %q on dataset %q are listed twice", t.Rows[m.Row].Name, t.Datasets[d].Name)
				}
				seen[at{m.Row, d}] = true
			}
		}
		for k := range h.Paper {
			if err := h.check(&h.Paper[k], len(t.Datasets), len(h.Names)); err != nil {
				return err
			}
		}
		for name := range h.Shared {
			if !slices.Contains(h.Names, name) {
				return fmt.Errorf("hyperparameters of %s: %q is not in the list of names", h.Algorithm, name)
			}
		}
	}
	return nil
}

// check returns an error if values are of a dataset that does not exist, or do not have so many of the names.
func (h *Hyperparameters) check(v *ValuesOn, datasets, values int) error {
	for _, d := range v.Datasets {
		if d < 0 || d >= datasets {
			return fmt.Errorf("hyperparameters of %s: there is no dataset %d, counted from 0: the table has %d datasets", h.Algorithm, d, datasets)
		}
	}
	if len(v.Values) != values {
		return fmt.Errorf("hyperparameters of %s: a list has %d values, want %d", h.Algorithm, len(v.Values), values)
	}
	for name := range v.Values {
		if !slices.Contains(h.Names, name) {
			return fmt.Errorf("hyperparameters of %s: %q is not in the list of names", h.Algorithm, name)
		}
	}
	return nil
}

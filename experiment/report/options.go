package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
)

// Options say what is in a report.
type Options struct {
	NoTimes bool
	// Sample divides squared deviations over folds by their number minus one. Otherwise deviations are of the population.
	Sample bool
	// Level is the level of tests and of the critical difference, at least LeastLevel; 0: 0.05.
	Level float64
	// AllTests shows the tests of every measure. Otherwise text, Markdown, LaTeX and HTML have only the tests of the first
	// measure. CSV and JSON always have all tests.
	AllTests bool
	// Notes are sentences that the report begins with, before its own.
	Notes []string
	// Pictures is the folder of the PNG and SVG pictures of Figures, as the report's readers
	// find it; then md and latex show these. Empty: they show none.
	Pictures string
}

func (o Options) checkLevel() error {
	if o.Level != 0 && !(o.Level >= LeastLevel && o.Level < 1) {
		return fmt.Errorf("level: want a number from %[2]v to below 1, got %[1]v: %[3]w", o.Level, LeastLevel, ErrOptions)
	}
	return nil
}

// check returns the options with their defaults.
func (o Options) check(t *result.Table) (Options, error) {
	if err := o.checkLevel(); err != nil {
		return o, err
	}
	if o.Level == 0 {
		o.Level = 0.05
	}
	for _, name := range t.Measures {
		if _, ok := measures.Find(name); !ok {
			return o, fmt.Errorf("unknown measure %q: the measures are %s: %w", name, strings.Join(measures.Names(), ", "), ErrOptions)
		}
	}
	if slices.Contains([]int{len(t.Datasets), len(t.Methods), len(t.Measures)}, 0) {
		return o, fmt.Errorf("the results have %d datasets, %d methods and %d measures, want at least one of each: %w", len(t.Datasets), len(t.Methods), len(t.Measures), ErrOptions)
	}
	return o, t.Validate()
}

// ErrOptions is what errors about options wrap.
var ErrOptions = errors.New("the report is not possible")

// LeastLevel bounds the level of tests: the critical difference of a smaller one is beyond the
// accuracy of its computation.
const LeastLevel = 1e-9

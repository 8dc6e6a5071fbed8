// Package result has the table of an experiment: what each run gave, and what reports and
// figures are made from. A table holds no clock and no place: two runs that gave the same
// measures have tables that differ in Run.Seconds alone, and in Run.Attempts and the commands of failed runs.
package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/internal/units"
)

// The states of a run.
const (
	Done    = "done"    // measured: Values and Mean are there
	Failed  = "failed"  // ended with an error, which Error has
	Missing = "missing" // not begun, or cancelled
	Running = "running"
)

// Table is an experiment's outcome so far: what reports and figures are made from. Each run
// is one job: one method of the table (an algorithm with its settings) on one fold of one dataset.
type Table struct {
	Name     string    `json:"name"`
	Datasets []Dataset `json:"datasets"`
	// Methods are the lines of the printed table.
	Methods []Method `json:"methods"`
	// Measures are names of package measures, each once.
	Measures []string `json:"measures"`
	// Clip says whether they are of clipped degrees: measures.Clip.
	Clip      string      `json:"clip,omitempty"`
	Runs      []Run       `json:"runs"`
	Published []Published `json:"published,omitempty"`
	// Hyperparameters has the hyperparameters of the methods, by algorithm; empty: not recorded.
	Hyperparameters []Hyperparameters `json:"hyperparameters,omitempty"`
	// Spec is the spec that the table was made by; nil: it is not known.
	Spec *Spec `json:"spec,omitempty"`
}

// Spec identifies the text of a spec.
type Spec struct {
	File   string `json:"file"`   // its name, without the folder
	Digest string `json:"digest"` // the SHA-256 of its text
	// Data is the folder of its files as the command gave it; empty: the spec's folder.
	Data string `json:"data,omitempty"`
}

// MaxConfusion bounds the classes of a confusion matrix in a table.
const MaxConfusion = 20

// Dataset is one of the datasets of an experiment.
type Dataset struct {
	Name     string `json:"name"`
	Rows     int    `json:"samples"`
	Features int    `json:"features"`
	Labels   int    `json:"labels"`
	Folds    int    `json:"folds"` // of one repeat
	Digest   string `json:"digest"`
	// Validation is the number of validation samples of a file, which are not among Rows. Unvalidated lists the methods
	// that do not use them, by number.
	Validation  int   `json:"validation_samples,omitempty"`
	Unvalidated []int `json:"not_validated,omitempty"`
	// Mask says which degrees of the training samples runs do not see; empty: they see all.
	Mask string `json:"mask,omitempty"`
	// WeightedMeasures is true if measures are weighted by the weights of the samples.
	WeightedMeasures bool `json:"weighted_measures,omitempty"`
	// Divisions numbers, for each fold of each repeat (by repeat, then by fold), which division of the
	// rows into tested and other ones it is: folds of one number test the same rows. Empty: each fold
	// tests other rows than all others.
	Divisions []int `json:"divisions,omitempty"`
	// Enhance says which label enhancement makes the labels of training samples; empty: none.
	Enhance string `json:"enhance,omitempty"`
	// Same is the name of an earlier dataset with the same runs: it is this one under another name.
	Same string `json:"same_as,omitempty"`
	// Axis says what the labels are, if runs have predictions.
	Axis *Labels `json:"label_axis,omitempty"`
	// Classes are the names of the labels if these are classes, at most MaxConfusion, and have names.
	Classes []string `json:"classes,omitempty"`
}

// Labels says what the labels of a dataset are.
type Labels struct {
	Names   []string `json:"names,omitempty"`   // empty: they have none
	Scale   bool     `json:"scale,omitempty"`   // they are whole numbers from First on
	First   int      `json:"first,omitempty"`   // number of the first one
	Classes bool     `json:"classes,omitempty"` // they are classes
}

// Curve is a learning curve, by step. A loss that is not known is null in JSON and NaN here.
type Curve struct {
	Steps      []uint64  `json:"steps"`
	Training   []float64 `json:"training_loss"`
	Validation []float64 `json:"validation_loss,omitempty"` // nil: no step has one
	// BeforeRefit is the last step before a refit; 0: there was none.
	BeforeRefit uint64 `json:"before_refit,omitempty"`
}

// Predicted is a test row with its true and predicted label distribution.
type Predicted struct {
	Row       uint32    `json:"row"` // number in the file
	True      []float32 `json:"true"`
	Predicted []float32 `json:"predicted"`
}

// Method is an algorithm with its settings.
type Method struct {
	Name      string            `json:"name"`
	Algorithm string            `json:"algorithm"`
	Preset    string            `json:"preset,omitempty"`
	Settings  map[string]string `json:"settings,omitempty"` // beside the preset's
	// Candidates are the settings that each run chooses among, from the simplest on; empty: it
	// does not choose.
	Candidates []string `json:"candidates,omitempty"`
	// Same is the name of an earlier method with the same runs on all datasets: the method is the earlier one under
	// another name.
	Same string `json:"same_as,omitempty"`
	// Budget is the time that the runs of the method, and of others with the same budget, may take. Missing runs were not
	// begun or did not end within it.
	Budget string `json:"budget,omitempty"`
}

// Run is one job of an experiment.
type Run struct {
	Dataset int    `json:"dataset"` // index into Table.Datasets
	Method  int    `json:"method"`  // index into Table.Methods
	Repeat  int    `json:"repeat,omitempty"`
	Fold    int    `json:"fold"`
	State   string `json:"state"`
	Error   string `json:"error,omitempty"` // of a failed run
	// Attempts is how often a failed run was tried: on a cluster, in how many jobs it ended; 0: it was refused. Command
	// trains a failed run alone, or NoCommand says why there is no such command. All of them depend on the place and the
	// history of the table.
	Attempts  int    `json:"attempts,omitempty"`
	Command   string `json:"command,omitempty"`
	NoCommand string `json:"no_command,omitempty"`
	// Values and Mean have a number for each of Table.Measures, as means over the test rows
	// of the fold: the model's and the mean predictor's. A number that is not finite, such
	// as the K-L divergence of a model that predicts a number, is null in JSON and NaN here.
	Values []float64 `json:"values,omitempty"`
	Mean   []float64 `json:"mean,omitempty"`
	// Against compares the K-L divergences of the model with the mean baseline's, which are never of clipped degrees. nil:
	// the method predicts numbers, or it was run by a version without the comparison.
	Against *measures.AgainstBaseline `json:"against_mean_baseline,omitempty"`
	Rows    int                       `json:"test_samples,omitempty"`
	Seconds float64                   `json:"seconds,omitempty"` // of computing
	Digest  string                    `json:"digest,omitempty"`  // of the model
	// Scores are the cumulative scores of labels on a scale: the share of the test rows for which the predicted
	// number, of a distribution the expected one, errs by at most 0, 1, 2 and so on.
	Scores []float64 `json:"scores,omitempty"`
	// Confusion has the number of test rows by true and by predicted class, or the sum of their weights, if the labels are
	// at most MaxConfusion classes.
	Confusion [][]float64 `json:"confusion,omitempty"`
	// Curve is the learning curve, if the experiment records it.
	Curve *Curve `json:"curve,omitempty"`
	// Predictions has predictions for some test rows, if the experiment records them and the method predicts
	// distributions.
	Predictions []Predicted `json:"predictions,omitempty"`
	Candidates
}

// Candidates are K-L divergences by which a run chose its settings. They are never of clipped degrees.
type Candidates struct {
	// CandidateKL are the K-L of the method's candidates on training samples that they were not trained on.
	CandidateKL []float64 `json:"candidate_kl,omitempty"`
	// MeanKL is the mean predictor's K-L on the tested rows, if there are candidates.
	MeanKL float64 `json:"mean_kl,omitempty"`
}

// Hyperparameters are the hyperparameters of the methods of an algorithm. All folds of a dataset have the same.
type Hyperparameters struct {
	Algorithm string `json:"algorithm"`
	// Names lists the hyperparameters in the order of the algorithm's settings.
	Names []string `json:"names"`
	// Methods has the hyperparameters of each method, each dataset once. In files of earlier builds, Shared has the values
	// that all methods have on all datasets, and Methods has the others.
	Methods []MethodValues    `json:"methods"`
	Shared  map[string]string `json:"shared,omitempty"`
}

// MethodValues are the values that a method has on some datasets.
type MethodValues struct {
	Method   int               `json:"method"`   // index into Table.Methods
	Datasets []int             `json:"datasets"` // indexes into Table.Datasets
	Values   map[string]string `json:"values"`
}

// Published is a figure that a paper prints, to stand beside the table's own. Method may be a
// name that the table has no method of: a method that only the paper ran.
type Published struct {
	Dataset   string  `json:"dataset"`
	Method    string  `json:"method"`
	Measure   string  `json:"measure"`
	Value     float64 `json:"value"`
	Deviation float64 `json:"std,omitempty"` // 0: the source prints none
	Source    string  `json:"source"`
}

// Name is what a spec calls a run, whatever its number in a table.
type Name struct {
	Dataset, Method string
	Repeat, Fold    int
}

// Compare orders names: by dataset, method, repeat and fold.
func (n Name) Compare(other Name) int {
	return cmp.Or(cmp.Compare(n.Dataset, other.Dataset), cmp.Compare(n.Method, other.Method),
		cmp.Compare(n.Repeat, other.Repeat), cmp.Compare(n.Fold, other.Fold))
}

// NameOf returns the name of a run of a valid table.
func (t *Table) NameOf(c *Run) Name {
	return Name{Dataset: t.Datasets[c.Dataset].Name, Method: t.Methods[c.Method].Name, Repeat: c.Repeat, Fold: c.Fold}
}

// String names the run in errors and reports.
func (n Name) String() string {
	text := fmt.Sprintf("%s, %s, fold %d", n.Dataset, n.Method, n.Fold)
	if n.Repeat > 0 {
		text += fmt.Sprintf(" of repeat %d", n.Repeat)
	}
	return text
}

// maxSame bounds the methods that a note says to be the same as another one, and maxNamed the methods that do not use
// validation samples.
const (
	maxSame  = 5
	maxNamed = 10
)

// Notes names the methods and datasets that are others under a second name, the datasets with equal folds, and the
// methods that do not use the validation samples of a dataset.
func (t *Table) Notes() (list []string) {
	same := make(map[string][]string) // the other names of a method
	for i := range t.Methods {
		if r := &t.Methods[i]; r.Same != "" {
			same[r.Same] = append(same[r.Same], r.Name)
		}
	}
	for i := range t.Methods {
		others := same[t.Methods[i].Name]
		if len(others) == 0 {
			continue
		}
		text := fmt.Sprintf("Methods %q", t.Methods[i].Name)
		for _, other := range others[:min(len(others), maxSame)] {
			text += fmt.Sprintf(" = %q", other)
		}
		if n := len(others) - maxSame; n > 0 {
			text += " = " + units.Plural(n, "other")
		}
		equal := "hyperparameters"
		if t.Methods[i].Algorithm == external.Name {
			equal = "predictions"
		}
		list = append(list, text+": they have the same "+equal+" on every dataset. Tables, tests and ranks list and count "+
			"the method once.")
	}
	for i := range t.Datasets {
		d := &t.Datasets[i]
		if d.Same != "" {
			list = append(list, fmt.Sprintf("Datasets %s and %s have the same samples, labels and folds. Ranks count the two "+
				"datasets once.", d.Same, d.Name))
		} else if d.Enhance != "" {
			list = append(list, fmt.Sprintf("Dataset %s: the labels of training samples are made logical and enhanced (%s); "+
				"test samples keep their labels. Ranks count it like any other dataset.",
				d.Name, d.Enhance))
		} else if b := slices.IndexFunc(t.Datasets[:i], func(b Dataset) bool {
			return d.Digest != "" && b.Digest == d.Digest && b.Mask == d.Mask && // the report lists these
				b.WeightedMeasures == d.WeightedMeasures
		}); b >= 0 {
			list = append(list, fmt.Sprintf("Datasets %s and %s have the same samples, but other folds or labels of another "+
				"kind. Ranks count both datasets.", t.Datasets[b].Name, d.Name))
		}
		if len(d.Divisions) > 0 {
			list = append(list, fmt.Sprintf("Dataset %s: repeats have the same folds. Results of equal folds are averaged "+
				"first, so the repeats add no evidence to the tests.", d.Name))
		}
		var names []string
		for _, method := range d.Unvalidated {
			names = append(names, t.Methods[method].Name)
		}
		others := slices.ContainsFunc(t.Methods, func(m Method) bool { return m.Algorithm == external.Name })
		if d.Validation > 0 {
			text := fmt.Sprintf("Dataset %s has %s of a file of their own. They decide early stopping, and the choices of "+
				"methods that choose by validation samples. They are never trained on or tested.", d.Name,
				units.Plural(d.Validation, "validation sample"))
			if n := len(names) - maxNamed; n > 0 {
				names = append(names[:maxNamed], units.Count(n)+" more")
			}
			if len(names) > 0 {
				text += " These methods do not use them: " + strings.Join(names, ", ") + "."
			}
			if others {
				text += " It is not known whether other programs, whose predictions are compared, used them."
			}
			list = append(list, text)
		}
	}
	return list
}

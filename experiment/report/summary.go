package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/internal/units"
)

// Summary is all that a report says. In JSON, it is the report, together with the other types of this file.
type Summary struct {
	Name string       `json:"name"`
	Spec *result.Spec `json:"spec,omitempty"`
	// Notes say what decides the report's numbers and is not plain from the table.
	Notes []string `json:"notes,omitempty"`
	// Deviations says how deviations over folds are computed: "population" or "sample".
	Deviations string           `json:"std_of"`
	Level      float64          `json:"level"`
	Datasets   []result.Dataset `json:"datasets"`
	Methods    []result.Method  `json:"methods"`
	Measures   []string         `json:"measures"`
	Clip       string           `json:"clip,omitempty"` // as in a table
	Results    []Result         `json:"results"`        // by dataset, then by measure
	// Unbeaten lists the methods that are not better than the mean baseline, by dataset.
	Unbeaten []Unbeaten `json:"mean_baseline_not_beaten,omitempty"`
	Rankings []Ranking  `json:"rankings"`
	Drawn
	Choices []Choice `json:"choices,omitempty"` // of methods that choose their settings
	// Hyperparameters are by algorithm, and then by method; empty: not recorded.
	Hyperparameters []Used             `json:"hyperparameters,omitempty"`
	Times           []Time             `json:"times,omitempty"` // by method, then by dataset
	Published       []result.Published `json:"published,omitempty"`
	Runs            Runs               `json:"runs"`

	options         Options
	hyperparameters []result.Hyperparameters // by algorithm, as Hyperparameters
}

// weighted says for captions which datasets have weighted measures.
func (s *Summary) weighted() string {
	var names []string
	for _, set := range s.Datasets {
		if set.WeightedMeasures {
			names = append(names, set.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case len(s.Datasets):
		return "; weighted by the weights of the samples"
	}
	return "; weighted by the weights of the samples on " + strings.Join(names, ", ")
}

// weights says for a caption about one dataset that its measures are weighted.
func (s *Summary) weights(dataset string) string {
	for _, set := range s.Datasets {
		if set.Name == dataset && set.WeightedMeasures {
			return " Samples count by their weights."
		}
	}
	return ""
}

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
	// Against is the name of the method that tests compare all others with; empty: the best of a dataset and measure.
	Against string
	// Transpose gives the tables of measures a row for each dataset, and a column for each method.
	Transpose bool
	// Bare leaves out of LaTeX all but the tables of measures, and of wins, ties and losses.
	Bare bool
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
			return o, fmt.Errorf("unknown measure %q: the measures are %s: %w", name, strings.Join(measures.Names(), ", "),
				ErrOptions)
		}
	}
	if slices.Contains([]int{len(t.Datasets), len(t.Methods), len(t.Measures)}, 0) {
		return o, fmt.Errorf("the results have %d datasets, %d methods and %d measures, want at least one of each: %w",
			len(t.Datasets), len(t.Methods), len(t.Measures), ErrOptions)
	}
	if err := t.Validate(); err != nil || o.Against == "" {
		return o, err
	}
	at := slices.IndexFunc(t.Methods, func(m result.Method) bool { return m.Name == o.Against })
	if at < 0 {
		var names []string
		for _, m := range t.Methods {
			names = append(names, m.Name)
		}
		return o, fmt.Errorf("against: there is no method %q: the methods are %s: %w", o.Against, strings.Join(names, ", "),
			ErrOptions)
	}
	o.Against = cmp.Or(t.Methods[at].Same, o.Against)
	return o, nil
}

// ErrOptions is what errors about options wrap.
var ErrOptions = errors.New("the report is not possible")

// LeastLevel bounds the level of tests: the critical difference of a smaller one is beyond the
// accuracy of its computation.
const LeastLevel = 1e-9

// Drawn is what only figures show.
type Drawn struct {
	Scores    []Scored   `json:"cumulative_scores,omitempty"`
	Confusion []Confused `json:"confusion,omitempty"`
	Curves    []Learned  `json:"learning_curves,omitempty"` // by dataset, by loss, then by method
	Shown     []Shown    `json:"predictions,omitempty"`
}

// Result is one measure on one dataset.
type Result struct {
	Dataset string `json:"dataset"`
	Measure string `json:"measure"`
	// NotMeasured is true if runs have ended and the measure is none of the dataset's labels, such as the accuracy
	// of labels that are no classes.
	NotMeasured   bool   `json:"not_measured,omitempty"`
	MeanPredictor Figure `json:"mean_baseline"`
	Lines         []Line `json:"lines"` // by method
}

// Figure is a mean over folds, repeats included, with the deviation over these. Folds that test the same
// rows have their mean first.
type Figure struct {
	Mean      number `json:"mean"`
	Deviation number `json:"std"`   // of one fold there is none
	Folds     int    `json:"folds"` // that it is a mean of; folds that test the same rows count once
}

// Line is what one method of the table has.
type Line struct {
	Method string `json:"method"`
	// Same is the name of an earlier method with the same runs: the method is not compared with others.
	Same string `json:"same_as,omitempty"`
	Figure
	// Wanted is the number of folds. The method is compared with others if it has all of them.
	Wanted int `json:"target_folds"`
	// Place is 1 for the best method and 2 for the second; methods that are equal share it. 0: neither.
	Place int `json:"place,omitempty"`
	// Against compares the method with the reference: Options.Against, or the best. It is nil for the reference, and for a
	// method without all folds.
	Against *Against `json:"against,omitempty"`
}

// Complete reports whether the method has every fold.
func (l *Line) Complete() bool { return l.Folds > 0 && l.Folds == l.Wanted }

// compared reports whether the method takes part in places, tests and ranks.
func (l *Line) compared() bool { return l.Complete() && l.Same == "" }

// Against compares a method with the reference on the same folds. P-values are two-sided; those named
// Holm are adjusted for the comparisons of one dataset and measure.
type Against struct {
	Reference string `json:"reference"`
	// Better is true if the method's mean is better than the reference's, however little.
	Better bool `json:"better,omitempty"`
	// CorrectedT is the corrected resampled t-test of Nadeau and Bengio, T the paired t-test.
	CorrectedT     number `json:"corrected_t_p"`
	CorrectedTHolm number `json:"corrected_t_p_holm"`
	T              number `json:"t_p"`
	THolm          number `json:"t_p_holm"`
	Wilcoxon       number `json:"wilcoxon_p"`
	WilcoxonHolm   number `json:"wilcoxon_p_holm"`
	// EffectSize is Cohen's d of the paired differences, the method's value less the reference's: their
	// mean over their sample deviation.
	EffectSize number `json:"effect_size"`
}

// Unbeaten is a method that is not better than the mean baseline on a dataset: over the test samples of all folds, its
// K-L is not lower by more than one standard error of the mean paired difference.
type Unbeaten struct {
	Dataset string `json:"dataset"`
	Method  string `json:"method"`
	measures.AgainstBaseline
}

// Ranking are the average ranks of methods over datasets by one measure, and the tests of them.
type Ranking struct {
	Measure string `json:"measure"`
	// Every method of Methods has the measure on all folds of Datasets. On the other datasets, methods lack folds
	// (LeftOut), the measure does not apply to the labels (NotMeasured), or methods have ended without a value (NoValue).
	// No list has a dataset that is a second name of another, or that has the samples, folds and values of another.
	// Methods has no method that is a second name of another.
	Datasets    []string `json:"datasets"`
	LeftOut     []string `json:"left_out,omitempty"`
	NotMeasured []string `json:"not_measured,omitempty"`
	NoValue     []string `json:"no_value,omitempty"`
	Methods     []Ranked `json:"methods"` // the best first
	// Friedman is the test that all methods are equal; nil: fewer than two datasets or methods.
	Friedman *Friedman `json:"friedman,omitempty"`
}

// Ranked is a method with its rank: 1 is best, ties have the mean of their ranks.
type Ranked struct {
	Method string `json:"method"`
	Rank   number `json:"rank"`
}

// Friedman is Friedman's test with Nemenyi's critical difference.
type Friedman struct {
	ChiSquared number `json:"chi_squared"`
	P          number `json:"p"`
	// Exact is true if P counts all ways to rank the methods. Otherwise P is from the χ² distribution. Least is the least
	// P of an exact test of so many methods and datasets.
	Exact bool   `json:"exact"`
	Least number `json:"least_p"`
	// CriticalDifference is NaN, and Alike has all methods, if P is not below the level: the test finds no difference, so
	// pairs are not compared.
	CriticalDifference number `json:"critical_difference"`
	// Alike lists the longest sequences of methods, by rank, in which no two methods differ by more.
	Alike [][]string `json:"alike"`
}

// Choice is what the candidates of a method scored, over all datasets together: which one is a good
// default.
type Choice struct {
	Method string `json:"method"`
	// Datasets are those on which every candidate was scored.
	Datasets   []string    `json:"datasets"`
	Candidates []Candidate `json:"candidates"`
	// Best has the least mean of logarithms, Chosen is the first within one standard error of it.
	Best   int `json:"best"`
	Chosen int `json:"chosen"`
}

// Candidate is one of the settings that a method's runs chose among.
type Candidate struct {
	Name string `json:"name"`
	// Ratios are, by dataset, the K-L divided by the K-L of the mean predictor.
	Ratios []number `json:"ratios"`
	Log    number   `json:"mean_log_ratio"`
	// Above is the mean of logarithms minus the mean of the best candidate. Error is the standard error of this
	// difference, over datasets.
	Above number `json:"above_best"`
	Error number `json:"standard_error"`
	Runs  int    `json:"chosen_by_runs"`
}

// Learned is the learning curve of a method on a dataset: one loss as a mean over folds, at the
// steps that all folds have.
type Learned struct {
	Dataset string   `json:"dataset"`
	Method  string   `json:"method"`
	Loss    string   `json:"loss"` // "training" or "validation"
	Steps   []uint64 `json:"steps"`
	Losses  []number `json:"losses"`
	Folds   int      `json:"folds"` // that it is a mean over, of so many wanted
	Wanted  int      `json:"target_folds"`
}

// Scored has the cumulative scores of a method on a dataset with ordinal labels.
type Scored struct {
	Dataset string `json:"dataset"`
	Method  string `json:"method"`
	// Within are shares of rows with an error of at most 0, 1, 2 and so on, as means over folds.
	Within []number `json:"within"`
	Folds  int      `json:"folds"`
}

// Confused has the confusion matrix of a method on a dataset with classes: sums over folds.
type Confused struct {
	Dataset string      `json:"dataset"`
	Method  string      `json:"method"`
	Classes []string    `json:"classes,omitempty"` // names of the classes, if they have names
	Counts  [][]float64 `json:"counts"`            // by true and by predicted class
}

// Shown are test samples of a dataset with what some methods of the table predict of them.
type Shown struct {
	Dataset string        `json:"dataset"`
	Methods []string      `json:"methods"` // of the table, the best first
	Tested  []ShownSample `json:"tested"`

	axis *result.Labels
}

// ShownSample is a test sample. The samples are sorted by the K-L of the best method, the smallest first.
type ShownSample struct {
	Number    uint32     `json:"number"` // in the file
	Repeat    int        `json:"repeat,omitempty"`
	Fold      int        `json:"fold"`
	True      []number   `json:"true"`
	Predicted [][]number `json:"predicted"` // by each of the methods of the table
	KL        []number   `json:"kl"`
}

// Used has the hyperparameters of a method on some datasets.
type Used struct {
	Method    string            `json:"method"`
	Algorithm string            `json:"algorithm"`
	Preset    string            `json:"preset"`
	Datasets  []string          `json:"datasets"`
	Values    map[string]string `json:"values"`
}

// Runs counts the runs by their state, and names those without measures.
type Runs struct {
	All     int `json:"all"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Missing int `json:"missing"`
	Running int `json:"running"`
	// Failures are the first failed runs, and Gaps the first that are missing or running.
	Failures []Failure `json:"failures,omitempty"`
	Gaps     []string  `json:"gaps,omitempty"`
}

// Failure is a failed run with its error.
type Failure struct {
	Run       string `json:"run"`
	Error     string `json:"error"`
	Attempts  int    `json:"attempts,omitempty"`
	Command   string `json:"command,omitempty"`
	NoCommand string `json:"no_command,omitempty"`
}

// Time is how long the done runs of a method took on a dataset, in seconds of computing.
type Time struct {
	Method  string `json:"method"`
	Dataset string `json:"dataset"`
	Runs    int    `json:"runs"`
	Total   number `json:"total_seconds"`
}

// at returns a dataset's result by a measure.
func (s *Summary) at(dataset, measure int) *Result {
	return &s.Results[dataset*len(s.Measures)+measure]
}

// hasMethod reports whether the table has a method of a name.
func (s *Summary) hasMethod(name string) bool {
	return slices.ContainsFunc(s.Methods, func(r result.Method) bool { return r.Name == name })
}

// names are the names of a method and of the later methods that are the same.
func (s *Summary) names(method int) []string {
	names := []string{s.Methods[method].Name}
	for _, r := range s.Methods {
		if r.Same == names[0] {
			names = append(names, r.Name)
		}
	}
	return names
}

// title is what a method is called in tables: all of its names, or the first and how many others there are.
func (s *Summary) title(method int) string {
	names := s.names(method)
	if text := strings.Join(names, " = "); len(names) == 1 || len(text) <= mostNames {
		return text
	}
	return names[0] + " = " + units.Plural(len(names)-1, "other")
}

// mostNames bounds the length of the names of one method, in letters.
const mostNames = 60

// listed lists the numbers of the methods that tables have: methods that are the same as an earlier method are left
// out.
func (s *Summary) listed() []int { return listed(s.Methods) }

func listed(all []result.Method) (methods []int) {
	for i := range all {
		if all[i].Same == "" {
			methods = append(methods, i)
		}
	}
	return methods
}

// higherIsBetter tells the direction of a measure that exists.
func higherIsBetter(name string) bool {
	m, _ := measures.Find(name)
	return m.HigherIsBetter
}

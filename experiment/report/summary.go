package report

import (
	"math"
	"slices"
	"strconv"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// Summary is all that a report says; its JSON is the report in JSON.
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
	Choices []Choice `json:"choices,omitempty"` // of methods whose runs chose their settings
	// Hyperparameters has a list of Used in JSON; empty: not recorded.
	Hyperparameters hyperparameters    `json:"hyperparameters,omitempty"`
	Times           []Time             `json:"times,omitempty"` // by method, then by dataset
	Growths         []Growth           `json:"growths,omitempty"`
	Published       []result.Published `json:"published,omitempty"`
	Runs            Runs               `json:"runs"`

	options Options
}

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
	// LeastWilcoxon is the least p that Wilcoxon's test of so many values can give; null if there is no value.
	LeastWilcoxon number `json:"least_wilcoxon_p"`
}

// leastWilcoxon is the least p of Wilcoxon's exact test of n values, whose differences have one sign then; NaN if there is none.
func leastWilcoxon(n int) number {
	if n == 0 {
		return number(math.NaN())
	}
	return number(math.Ldexp(1, 1-n))
}

// observations is how many values a method has that lacks none.
func (r *Result) observations() int { return r.Lines[0].Wanted }

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
	// Wanted is how many folds there are; the method is compared with others where it has them all.
	Wanted int `json:"target_folds"`
	// Place is 1 for the best method and 2 for the second; methods that are equal share it. 0: neither.
	Place int `json:"place,omitempty"`
	// Against compares the method with the best; nil for the best, and for a method without all folds.
	Against *Against `json:"against,omitempty"`
}

// Complete reports whether the method has every fold.
func (l *Line) Complete() bool { return l.Folds > 0 && l.Folds == l.Wanted }

// compared reports whether the method takes part in places, tests and ranks.
func (l *Line) compared() bool { return l.Complete() && l.Same == "" }

// number is a float that is null in JSON where it is not finite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if n.none() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n)+0, 'g', -1, 64), nil // no -0
}

// Summarize computes what a report says. Errors are those of Write.
func Summarize(t *result.Table, o Options) (*Summary, error) {
	o, err := o.check(t)
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Name: t.Name, Spec: t.Spec, Deviations: "population", Level: o.Level, Datasets: t.Datasets, Methods: t.Methods, Measures: t.Measures, Clip: t.Clip, Published: t.Published,
		Runs: runsOf(t, !o.NoTimes), options: o,
	}
	if o.Sample {
		s.Deviations = "sample"
	}
	s.Published = slices.Clone(t.Published)
	for i := range s.Published {
		s.Published[i].Value += 0 // no -0
	}
	g := newGrid(t)
	s.Notes = append(slices.Clone(o.Notes), g.notes()...)
	s.Scores, s.Confusion = g.scored(), g.confused()
	for d := range t.Datasets {
		for m := range t.Measures {
			s.Results = append(s.Results, s.result(g, d, m))
		}
	}
	s.Unbeaten = g.unbeaten()
	for m := range t.Measures {
		s.Rankings = append(s.Rankings, s.ranker(m).ranking(g))
	}
	s.Notes = append(s.Notes, s.sameNotes()...)
	s.Hyperparameters = usedOf(t)
	s.Choices, s.Curves, s.Shown = choicesOf(g), g.learned(), s.shown(g)
	if !o.NoTimes {
		s.Times = timesOf(t)
		s.Growths = s.growths(sweepsOf(s.Methods))
	}
	return s, nil
}

// at returns a dataset's result by a measure.
func (s *Summary) at(dataset, measure int) *Result {
	return &s.Results[dataset*len(s.Measures)+measure]
}

// result computes one measure on one dataset.
func (s *Summary) result(g *grid, d, m int) Result {
	r := Result{Dataset: s.Datasets[d].Name, Measure: s.Measures[m], MeanPredictor: s.figure(finiteOf(g.means(d, m)))}
	for method := range s.Methods {
		l := Line{Method: s.Methods[method].Name, Same: s.Methods[method].Same, Wanted: len(g.divided[d])}
		l.Figure = s.figure(finiteOf(g.values(d, method, m)))
		r.Lines = append(r.Lines, l)
	}
	r.NotMeasured = g.anyDone(d) && r.MeanPredictor.Folds == 0 && !slices.ContainsFunc(r.Lines, func(l Line) bool { return l.Folds > 0 })
	r.LeastWilcoxon = leastWilcoxon(r.observations())
	higher := higherIsBetter(s.Measures[m])
	if best := r.place(higher); best >= 0 {
		r.compare(g, d, m, best)
	}
	return r
}

// figure returns the mean of values and their deviation.
func (s *Summary) figure(values []float64) Figure {
	moments, n := statistics.MomentsOf(values), float64(len(values))
	if s.Deviations == "population" && n > 1 {
		moments.Deviation *= math.Sqrt((n - 1) / n)
	}
	return Figure{number(moments.Mean), number(moments.Deviation), len(values)}
}

// place marks the best and the second line among those that are compared, and returns the first of the
// best; -1: there is none.
func (r *Result) place(higher bool) int {
	means := make([]float64, len(r.Lines))
	for i := range r.Lines {
		means[i] = math.NaN()
		if r.Lines[i].compared() {
			means[i] = float64(r.Lines[i].Mean)
		}
	}
	places := statistics.Places(means, higher)
	for i, place := range places {
		r.Lines[i].Place = place
	}
	return slices.Index(places, 1)
}

// higherIsBetter tells the direction of a measure that exists.
func higherIsBetter(name string) bool {
	m, _ := measures.Find(name)
	return m.HigherIsBetter
}

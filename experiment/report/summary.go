package report

import (
	"math"
	"strconv"

	"github.com/coppice-ldl/coppice/algorithms/measures"
	"github.com/coppice-ldl/coppice/experiment/result"
	"github.com/coppice-ldl/coppice/experiment/statistics"
)

// Summary is all that a report says; its JSON is the report in JSON.
type Summary struct {
	Name string `json:"name"`
	// Deviations says how deviations over folds are computed: "population" or "sample".
	Deviations string             `json:"deviations"`
	Level      float64            `json:"level"`
	Datasets   []result.Dataset   `json:"datasets"`
	Rows       []result.Row       `json:"rows"`
	Measures   []string           `json:"measures"`
	Clip       string             `json:"clip,omitempty"` // as in a table
	Results    []Result           `json:"results"`        // by dataset, then by measure
	Rankings   []Ranking          `json:"rankings"`
	Scores     []Scored           `json:"cumulative_scores,omitempty"`
	Confusion  []Confused         `json:"confusion,omitempty"`
	Curves     []Learned          `json:"learning_curves,omitempty"` // by dataset, by loss, then by row
	Shown      []Shown            `json:"predictions,omitempty"`
	Choices    []Choice           `json:"choices,omitempty"` // of rows whose cells chose their settings
	Times      []Time             `json:"times,omitempty"`   // by row, then by dataset
	Growths    []Growth           `json:"growths,omitempty"`
	Published  []result.Published `json:"published,omitempty"`
	Cells      Cells              `json:"cells"`

	allTests bool
	pictures string
}

// Result is one measure on one dataset.
type Result struct {
	Dataset       string `json:"dataset"`
	Measure       string `json:"measure"`
	MeanPredictor Figure `json:"mean_predictor"`
	Lines         []Line `json:"lines"` // by row
}

// Figure is a mean over folds, repeats included, with the deviation over these.
type Figure struct {
	Mean      number `json:"mean"`
	Deviation number `json:"deviation"` // of one fold there is none
	Folds     int    `json:"folds"`     // that it is a mean of
}

// Line is what one row of the table has.
type Line struct {
	Row string `json:"row"`
	Figure
	// Wanted is how many folds there are; the row is compared with others where it has them all.
	Wanted int `json:"wanted"`
	// Place is 1 for the best row and 2 for the second; rows that are equal share it. 0: neither.
	Place int `json:"place,omitempty"`
	// Against compares the row with the best; nil for the best, and for a row without all folds.
	Against *Against `json:"against,omitempty"`
}

// Complete reports whether the row has every fold.
func (l *Line) Complete() bool { return l.Folds > 0 && l.Folds == l.Wanted }

// number is a float that is null in JSON where it is not finite.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if n.none() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// Summarize computes what a report says. Errors are those of Write.
func Summarize(t *result.Table, o Options) (*Summary, error) {
	o, err := o.check(t)
	if err != nil {
		return nil, err
	}
	s := &Summary{
		Name: t.Name, Deviations: "population", Level: o.Level, Datasets: t.Datasets, Rows: t.Rows, Measures: t.Measures, Clip: t.Clip, Published: t.Published,
		Cells: cellsOf(t), allTests: o.AllTests, pictures: o.Pictures,
	}
	if o.Sample {
		s.Deviations = "sample"
	}
	g := newGrid(t)
	s.Scores, s.Confusion = g.scored(), g.confused()
	for d := range t.Datasets {
		for m := range t.Measures {
			s.Results = append(s.Results, s.result(g, d, m))
		}
	}
	for m := range t.Measures {
		s.Rankings = append(s.Rankings, s.ranking(m))
	}
	s.Choices, s.Curves, s.Shown = choicesOf(g), g.learned(), s.shown(g)
	if !o.NoTimes {
		s.Times = timesOf(t)
		s.Growths = s.growths(sweepsOf(s.Rows))
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
	for row := range s.Rows {
		l := Line{Row: s.Rows[row].Name, Wanted: len(g.folds[d])}
		l.Figure = s.figure(finiteOf(g.values(d, row, m)))
		r.Lines = append(r.Lines, l)
	}
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

// place marks the best and the second line among those with every fold, and returns the first of
// the best; -1: there is none.
func (r *Result) place(higher bool) int {
	best := -1
	for place := 1; place <= 2; place++ {
		first := -1
		for i := range r.Lines {
			l := &r.Lines[i]
			if l.Complete() && l.Place == 0 && (first < 0 || better(l.Mean, r.Lines[first].Mean, higher)) {
				first = i
			}
		}
		if first < 0 {
			return best
		}
		value := r.Lines[first].Mean
		for i := range r.Lines {
			if l := &r.Lines[i]; l.Complete() && l.Mean == value {
				l.Place = place
			}
		}
		if place == 1 {
			best = first
		}
	}
	return best
}

func better(a, b number, higher bool) bool {
	if higher {
		return a > b
	}
	return a < b
}

// higherIsBetter tells the direction of a measure that exists.
func higherIsBetter(name string) bool {
	m, _ := measures.Find(name)
	return m.HigherIsBetter
}

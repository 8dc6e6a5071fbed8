package measures

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
)

// Measure is one entry of All.
type Measure struct {
	Name           string // in JSON and metrics
	Title          string // in tables
	Formula        string
	HigherIsBetter bool
	Func           func(d, p []float64) float64
}

// Count is the number of measures.
const Count = 10

// All lists the measures in the order of tables, sums and JSON.
var All = []Measure{
	{"kl", "K-L", "Σ d ln(d/p)", false, KL},
	{"euclidean", "Euclidean", "sqrt(Σ (d-p)²)", false, Euclidean},
	{"sorensen", "Sørensen", "Σ|d-p| / Σ(d+p)", false, Sorensen},
	{"chi2", "Squared χ²", "Σ (d-p)²/(d+p)", false, Chi2},
	{"fidelity", "Fidelity", "Σ sqrt(d·p)", true, Fidelity},
	{"intersection", "Intersection", "Σ min(d, p)", true, Intersection},
	{"chebyshev", "Chebyshev", "max|d-p|", false, Chebyshev},
	{"clark", "Clark", "sqrt(Σ (d-p)²/(d+p)²)", false, Clark},
	{"canberra", "Canberra", "Σ |d-p|/(d+p)", false, Canberra},
	{"cosine", "Cosine", "Σ d·p / (sqrt(Σ d²) sqrt(Σ p²))", true, Cosine},
}

// CountMore is the number of measures of More.
const CountMore = 4

// More lists measures of distributions beside those of All, in the order of tables, sums and
// JSON. A job has them where its spec says `measures: all`.
var More = []Measure{
	{"spearman", "Spearman", "correlation of the ranks of d and p", true, Spearman},
	{"jensen_shannon", "Jensen-Shannon", "(K-L(d, m) + K-L(p, m)) / 2, m = (d+p)/2", false, JensenShannon},
	{"zero_one", "Zero-one loss", "0 if d and p have their maximum at the same label, else 1", false, ZeroOne},
	{"error_probability", "Error probability", "1 - d at the label with the largest p", false, ErrorProbability},
}

// Stat is a mean and the population standard deviation around it.
type Stat struct {
	Mean float64
	Std  float64
}

// Report holds a Stat for each measure, in the order of All. Its JSON is an
// object by name in that order: {"kl":{"mean":0.07,"std":0.02},...}; a value
// that is not finite is null.
type Report [Count]Stat

// Get returns the Stat of a measure by name, and whether there is one.
func (r Report) Get(name string) (Stat, bool) {
	for i := range All {
		if All[i].Name == name {
			return r[i], true
		}
	}
	return Stat{}, false
}

type statJSON struct {
	Mean *float64 `json:"mean"`
	Std  *float64 `json:"std"`
}

// MarshalJSON implements json.Marshaler.
func (r Report) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	for i, s := range r {
		v, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("measures: %s: %w", All[i].Name, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(b, "%q:%s", All[i].Name, v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler; a measure that is absent or null
// becomes NaN, and names that are not in All are ignored.
func (r *Report) UnmarshalJSON(b []byte) error {
	var m map[string]statJSON
	if err := json.Unmarshal(b, &m); err != nil {
		return fmt.Errorf("measures: %w", err)
	}
	for i := range All {
		s := m[All[i].Name]
		r[i] = Stat{orNaN(s.Mean), orNaN(s.Std)}
	}
	return nil
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// MarshalJSON implements json.Marshaler: {"mean":0.07,"std":0.02}, where what is not finite
// is null.
func (s Stat) MarshalJSON() ([]byte, error) {
	v := statJSON{&s.Mean, &s.Std}
	if s.Mean-s.Mean != 0 {
		v.Mean = nil
	}
	if s.Std-s.Std != 0 {
		v.Std = nil
	}
	return json.Marshal(v)
}

// UnmarshalJSON implements json.Unmarshaler; what is absent or null becomes NaN.
func (s *Stat) UnmarshalJSON(b []byte) error {
	var v statJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*s = Stat{orNaN(v.Mean), orNaN(v.Std)}
	return nil
}

// statOf returns mean and population standard deviation of n values from their sum and the
// sum of their squares.
func statOf(n, sum, squares float64) Stat {
	mean := sum / n
	return Stat{mean, math.Sqrt(max(squares/n-float64(mean*mean), 0))}
}

// StatOver returns mean and population standard deviation of values.
func StatOver(values []float64) Stat {
	n, sum, squares := float64(len(values)), 0.0, 0.0
	for _, v := range values {
		sum += v
	}
	mean := sum / n
	for _, v := range values {
		d := v - mean
		squares += float64(d * d)
	}
	return Stat{mean, math.Sqrt(squares / n)}
}

// overFolds returns the Stat over folds of the means that of gives.
func overFolds[T any](folds []T, of func(*T) Stat) Stat {
	var means []float64
	for i := range folds {
		means = append(means, of(&folds[i]).Mean)
	}
	return StatOver(means)
}

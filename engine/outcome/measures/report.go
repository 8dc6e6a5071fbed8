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

func finite(x float64) *float64 {
	if x-x != 0 {
		return nil
	}
	return &x
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

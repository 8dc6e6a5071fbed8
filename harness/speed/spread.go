package speed

import "sort"

// Spread is the median, least and greatest of some figures.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf summarizes one figure or more.
func SpreadOf(figures []float64) Spread {
	f := append([]float64(nil), figures...)
	sort.Float64s(f)
	n := len(f)
	return Spread{Median: (f[(n-1)/2] + f[n/2]) / 2, Min: f[0], Max: f[n-1]}
}

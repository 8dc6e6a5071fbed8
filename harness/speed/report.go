package speed

import "slices"

// Report is what a measurement found.
type Report struct {
	Kind     string            `json:"kind"` // ldlf, network, forest, cluster
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Runs     int               `json:"runs"` // of each row; fewer than were asked for where time was up
	// Data says of each dataset what it was: a file, or generated.
	Data    []Source  `json:"data,omitempty"`
	Rows    []Result  `json:"rows"`
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Source says where a dataset came from.
type Source struct {
	Name      string `json:"name"`
	Generated bool   `json:"generated"` // of the shape of the file, which is not at hand
	File      string `json:"file,omitempty"`
}

// Skipped is a peer that did not run, and why.
type Skipped struct {
	Peer   string `json:"peer"`
	Reason string `json:"reason"`
}

// Result is what was measured of a row. Times are in seconds.
type Result struct {
	Name    string `json:"name"`
	Of      string `json:"of"` // what takes the seconds: "a step"
	Seconds Spread `json:"seconds"`
	// Loss is the K-L divergence of the model on its training rows, where there is one.
	Loss  float64      `json:"loss,omitempty"`
	Peers []PeerResult `json:"peers,omitempty"`
}

// PeerResult is a peer's figure for a row.
type PeerResult struct {
	Peer    string `json:"peer"`
	Seconds Spread `json:"seconds"`
	// Ratio is that of each run's two figures, the peer's by Coppice's.
	Ratio Spread  `json:"ratio"`
	Loss  float64 `json:"loss,omitempty"`
}

// Spread is the median, least and greatest of some figures.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// SpreadOf summarizes one figure or more.
func SpreadOf(figures []float64) Spread {
	f := slices.Sorted(slices.Values(figures))
	n := len(f)
	return Spread{Median: (f[(n-1)/2] + f[n/2]) / 2, Min: f[0], Max: f[n-1]}
}

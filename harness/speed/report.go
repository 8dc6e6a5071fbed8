package speed

// Report is what a measurement found: a file of it is what a later one is compared with.
type Report struct {
	Kind     string            `json:"kind"` // ldlf, network, forest, cluster
	Machine  Machine           `json:"machine"`
	Versions map[string]string `json:"versions"`
	Runs     int               `json:"runs"` // of each row; fewer than were asked for where time was up
	// Data says of each dataset what it was: a file, or generated.
	Data    []Source  `json:"data,omitempty"`
	Rows    []Result  `json:"rows"`
	Skipped []Skipped `json:"skipped,omitempty"`
	// Comparison is with an earlier report.
	Comparison *Comparison `json:"comparison,omitempty"`
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

// Comparison holds the rows of two reports against each other.
type Comparison struct {
	File string `json:"file"`
	// Machines says how the machines differ; empty: they do not.
	Machines string `json:"machines_differ,omitempty"`
	Versions string `json:"versions_differ,omitempty"`
	Rows     []Was  `json:"rows"`
	// Missing are rows of one report that the other does not have.
	Missing []string `json:"missing,omitempty"`
}

// Was is a row of two reports.
type Was struct {
	Name string `json:"name"`
	Of   string `json:"of"`
	// Ratio is the earlier median by the later one: above 1 where it became faster.
	Ratio float64 `json:"ratio"`
	// Apart is set where the spreads of the two do not overlap.
	Apart bool `json:"apart"`
}

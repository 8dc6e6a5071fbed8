package result

import "encoding/json"

// The types below have the fields of those that they are named after, and the keys that users read. The keys of
// the others are in files and in blobs of a cluster.

type shownDataset struct {
	Name      string   `json:"name"`
	Rows      int      `json:"samples"`
	Features  int      `json:"features"`
	Labels    int      `json:"labels"`
	Folds     int      `json:"folds"`
	Digest    string   `json:"digest"`
	Divisions []int    `json:"divisions,omitempty"`
	Same      string   `json:"same_as,omitempty"`
	SameData  string   `json:"same_data_as,omitempty"`
	Axis      *Labels  `json:"label_axis,omitempty"`
	Classes   []string `json:"classes,omitempty"`
}

type shownCell struct {
	Dataset     int         `json:"dataset"`
	Row         int         `json:"method"`
	Repeat      int         `json:"repeat,omitempty"`
	Fold        int         `json:"fold"`
	State       string      `json:"state"`
	Error       string      `json:"error,omitempty"`
	Values      []float64   `json:"values,omitempty"`
	Mean        []float64   `json:"mean,omitempty"`
	Rows        int         `json:"test_samples,omitempty"`
	Seconds     float64     `json:"seconds,omitempty"`
	Digest      string      `json:"digest,omitempty"`
	Scores      []float64   `json:"scores,omitempty"`
	Confusion   [][]uint64  `json:"confusion,omitempty"`
	Curve       *Curve      `json:"curve,omitempty"`
	Predictions []Predicted `json:"predictions,omitempty"`
	CandidateKL []float64   `json:"candidate_kl,omitempty"`
	MeanKL      float64     `json:"mean_kl,omitempty"`
}

type shownPublished struct {
	Dataset   string  `json:"dataset"`
	Row       string  `json:"method"`
	Measure   string  `json:"measure"`
	Value     float64 `json:"value"`
	Deviation float64 `json:"std,omitempty"`
	Source    string  `json:"source"`
}

// ShownDatasets are datasets whose JSON has the keys that users read.
type ShownDatasets []Dataset

// MarshalJSON implements json.Marshaler.
func (d ShownDatasets) MarshalJSON() ([]byte, error) {
	list := make([]shownDataset, len(d))
	for i := range d {
		list[i] = shownDataset(d[i])
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *ShownDatasets) UnmarshalJSON(b []byte) error {
	var list []shownDataset
	if err := decode(b, &list); err != nil {
		return err
	}
	*d = make(ShownDatasets, len(list))
	for i := range list {
		(*d)[i] = Dataset(list[i])
	}
	return nil
}

// ShownPublished are values of papers whose JSON has the keys that users read.
type ShownPublished []Published

// MarshalJSON implements json.Marshaler.
func (p ShownPublished) MarshalJSON() ([]byte, error) {
	list := make([]shownPublished, len(p))
	for i := range p {
		list[i] = shownPublished(p[i])
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *ShownPublished) UnmarshalJSON(b []byte) error {
	var list []shownPublished
	if err := decode(b, &list); err != nil {
		return err
	}
	*p = nil
	for i := range list {
		*p = append(*p, Published(list[i]))
	}
	return nil
}

// shownRun is a shownCell with its lists replaced.
type shownRun struct {
	shownCell
	Values      numbers `json:"values,omitempty"`
	Mean        numbers `json:"mean,omitempty"`
	CandidateKL numbers `json:"candidate_kl,omitempty"`
}

type shownCells []Cell

func (c shownCells) MarshalJSON() ([]byte, error) {
	list := make([]shownRun, len(c))
	for i := range c {
		list[i] = shownRun{shownCell(c[i]), c[i].Values, c[i].Mean, c[i].CandidateKL}
	}
	return json.Marshal(list)
}

func (c *shownCells) UnmarshalJSON(b []byte) error {
	var list []shownRun
	if err := decode(b, &list); err != nil {
		return err
	}
	*c = make(shownCells, len(list))
	for i := range list {
		own := &(*c)[i]
		*own = Cell(list[i].shownCell)
		own.Values, own.Mean, own.CandidateKL = list[i].Values, list[i].Mean, list[i].CandidateKL
	}
	return nil
}

// shownTable is a Table as Encode writes it.
type shownTable struct {
	Name      string         `json:"name"`
	Datasets  ShownDatasets  `json:"datasets"`
	Methods   []Row          `json:"methods"`
	Measures  []string       `json:"measures"`
	Clip      string         `json:"clip,omitempty"`
	Runs      shownCells     `json:"runs"`
	Published ShownPublished `json:"published,omitempty"`
	Spec      *Spec          `json:"spec,omitempty"`
}

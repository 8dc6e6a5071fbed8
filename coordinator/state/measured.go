package state

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
)

// measured are the measures of a done job, read off its outcome once: lists are
// sorted by them.
type measured struct {
	of     string // which rows
	report measures.Report
}

// heldOut is pipeline.Outcome.EvaluatedOn of a job that held rows out.
const heldOut = "test samples"

// measuredBy reads an outcome; nil: it has no measures.
func measuredBy(outcome json.RawMessage) *measured {
	var o struct {
		EvaluatedOn string           `json:"evaluated_on"`
		Measures    *measures.Report `json:"measures"`
	}
	if len(outcome) == 0 || json.Unmarshal(outcome, &o) != nil || o.Measures == nil {
		return nil
	}
	return &measured{o.EvaluatedOn, *o.Measures}
}

// info returns the finite means by name, and the samples that they are over: "test samples" or "training samples".
func (m *measured) info() (means map[string]float64, of string) {
	if m == nil {
		return nil, ""
	}
	means = make(map[string]float64, measures.Count)
	for i := range measures.All {
		if v := m.report[i].Mean; v-v == 0 {
			means[measures.All[i].Name] = v
		}
	}
	return means, m.of
}

// Measure returns the mean of one of a done job's measures, by name, and whether it
// is over rows that were held out. ok: there is one, and it is finite.
func (j *Job) Measure(name string) (mean float64, held, ok bool) {
	if j.measured == nil {
		return 0, false, false
	}
	s, ok := j.measured.report.Get(name)
	return s.Mean, j.measured.of == heldOut, ok && s.Mean-s.Mean == 0
}

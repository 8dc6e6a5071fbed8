package state

import (
	"testing"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/round"
)

// The first thing that differs is named, with both values, and nothing else.
func TestDifference(t *testing.T) {
	job := func(change func(*round.Job)) *round.Job {
		j := &round.Job{Algorithm: "ldlf", Numerics: 1, Seed: 1, Dataset: "d1", Params: []byte(`{"trees":5,"depth":7,"words":"a,b"}`)}
		change(j)
		return j
	}
	tests := []struct {
		change func(*round.Job)
		audit  uint32
		want   string
	}{
		{func(j *round.Job) { j.Algorithm, j.Seed = "rf", 2 }, 0, "its algorithm is ldlf, not rf"},
		{func(j *round.Job) { j.Dataset = "d2" }, 0, "its dataset's digest is d1, not d2"},
		{func(j *round.Job) { j.Split.TestFraction = 0.25 }, 0, "its test_fraction is 0, not 0.25"},
		{func(j *round.Job) { j.Folds = 3 }, 0, "its folds is 0, not 3"},
		{func(j *round.Job) { j.Split.Assigned = "abc" }, 0, "its split file is none, not abc"},
		{func(j *round.Job) {}, 7, "its audit is 0 units of a million, not 7 units of a million"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":8,"words":"c"}`) }, 0, "its depth is 7, not 8"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":7,"words":"c"}`) }, 0, `its words is "a,b", not "c"`},
		{func(j *round.Job) { j.Split.ValidationMin = 3 }, 0, "its split is another"},
	}
	for _, test := range tests {
		old := &Job{Dataset: "yeast", Job: job(func(*round.Job) {})}
		got := difference(old, &protocol.SubmitEntry{Dataset: "yeast", AuditPPM: test.audit, Job: job(test.change)})
		if got != test.want {
			t.Errorf("%s; want %s", got, test.want)
		}
	}
}

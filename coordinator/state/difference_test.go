package state

import (
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestSettingsOf: the settings are listed in their order, and what is no object has none.
func TestSettingsOf(t *testing.T) {
	for text, want := range map[string][]field{
		`{"trees":5,"a":"b"}`: {{"trees", "5"}, {"a", `"b"`}},
		`{"trees":5,"a"`:      {{"trees", "5"}},
		`{"trees":5,"a":}`:    {{"trees", "5"}},
		`{}`:                  nil,
		`["trees",5]`:         nil,
		`"trees"`:             nil,
		`}`:                   nil,
		``:                    nil,
	} {
		if got := settingsOf([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

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
		{func(j *round.Job) { j.Algorithm, j.Seed = "rf", 2 }, 0, "its algorithm is ldlf, but the new job has rf"},
		{func(j *round.Job) { j.Dataset = "d2" }, 0, "its dataset's digest is d1, but the new job has d2"},
		{func(j *round.Job) { j.Split.TestFraction = 0.25 }, 0, "its test_fraction is 0, but the new job has 0.25"},
		{func(j *round.Job) { j.Folds = 3 }, 0, "its folds is 0, but the new job has 3"},
		{func(j *round.Job) { j.Split.Assigned = "abc" }, 0, "its split file is none, but the new job has abc"},
		{func(j *round.Job) {}, 7, "its audit is 0 of a million tasks, but the new job has 7 of a million tasks"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":8,"words":"c"}`) }, 0, "its depth is 7, but the new job has 8"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":7,"words":"c"}`) }, 0, `its words is "a,b", but the new job has "c"`},
		{func(j *round.Job) { j.Seed = 2 }, 0, "its seed is 1, but the new job has 2"},
		{func(j *round.Job) { j.Measures = "six" }, 0, "its measures is ten, but the new job has six"},
		{func(j *round.Job) { j.Clip = "zero" }, 0, "its clip is none, but the new job has zero"},
		{func(j *round.Job) { j.Numerics = 2 }, 0, "its arithmetic version is 1, but the new job has 2"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":7}`) }, 0, "it has different settings"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"depth":7,"words":"a,b","more":1}`) }, 0, "it has different settings"},
		{func(j *round.Job) { j.Params = []byte(`{"trees":5,"levels":7,"words":"a,b"}`) }, 0, "it has different settings"},
		{func(j *round.Job) { j.Params = nil }, 0, "it has different settings"},
		{func(j *round.Job) { j.Split.ValidationMin = 3 }, 0, "its division into training and test samples is different"},
	}
	for _, test := range tests {
		old := &Job{Dataset: "yeast", Job: job(func(*round.Job) {})}
		got := difference(old, &protocol.SubmitEntry{Dataset: "yeast", AuditPPM: test.audit, Job: job(test.change)})
		if got != test.want {
			t.Errorf("%s; want %s", got, test.want)
		}
	}
	other := &protocol.SubmitEntry{Dataset: "movie", Job: job(func(*round.Job) {})}
	if got := difference(&Job{Dataset: "yeast", Job: other.Job}, other); got != "its dataset is yeast, but the new job has movie" {
		t.Error(got)
	}
}

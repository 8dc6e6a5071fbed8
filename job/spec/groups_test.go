package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestGroupFolds: the groups of the dataset become the folds of the job, or the spec is
// refused by the key that is at fault.
func TestGroupFolds(t *testing.T) {
	m := *testManifest(t, 100)
	f, err := Parse("job.yaml", []byte("group_folds: true\n"), "rf")
	if err != nil || !f.GroupFolds {
		t.Fatal(err)
	}
	refuse := func(what, key, says string, m *dataset.Manifest, s protocol.Spec) {
		t.Helper()
		_, err := Resolve(s, m)
		var p *param.Error
		if !errors.As(err, &p) || p.Name != key || !strings.Contains(p.Reason.String(), says) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	refuse("no groups", "group_folds", "has no groups", &m, f.Spec)
	m.Groups = &dataset.Groups{Digest: strings.Repeat("ab", 32), Names: []string{"ann"}}
	refuse("one group", "group_folds", "at least two", &m, f.Spec)
	m.Groups.Names = []string{"ann", "bob", "cy"}
	for what, s := range map[string]protocol.Spec{
		"folds": {GroupFolds: true, Folds: 3}, "a test fraction": {GroupFolds: true, TestFraction: 0.1},
		"a list": {GroupFolds: true, Assigned: m.Groups.Digest, Folds: 3},
	} {
		refuse(what, "group_folds", "cannot be combined with", &m, s)
	}
	j, err := Resolve(f.Spec, &m)
	if err != nil || j.Folds != 3 || j.Split.Folds != 3 || j.Split.Assigned != m.Groups.Digest || j.Split.Overlap ||
		j.Predictions == 0 {
		t.Errorf("%+v, error %v", j, err)
	}
	for algorithm, want := range map[string]string{"rf": "", "ldlf": m.Groups.Digest, "ensemble": m.Groups.Digest,
		"df-ldl": m.Groups.Digest, "aa-knn": ""} {
		j, err := Resolve(protocol.Spec{Algorithm: algorithm, TestFraction: 0.1}, &m)
		if err != nil || j.Split.Groups != want {
			t.Errorf("%s: the groups of the split are %q, want %q, error %v", algorithm, j.Split.Groups, want, err)
		}
		one := m
		one.Groups = &dataset.Groups{Digest: m.Groups.Digest, Names: m.Groups.Names[:1]}
		if j, err = Resolve(protocol.Spec{Algorithm: algorithm}, &one); err != nil || j.Split.Groups != "" {
			t.Errorf("%s, one group: %+v, error %v", algorithm, j, err)
		}
	}
	m.Groups.Names = m.Groups.Names[:2]
	refuse("one group left", "inner", "in one group", &m, protocol.Spec{Algorithm: "ensemble", GroupFolds: true})
	for _, set := range []map[string]string{{"inner": "rows"}, {"weights": "mean"}} {
		if _, err := Resolve(protocol.Spec{Algorithm: "ensemble", GroupFolds: true, Set: set}, &m); err != nil {
			t.Errorf("the advice %v does not help: %v", set, err)
		}
	}
	m.Groups.Names = []string{"ann", "bob", "cy"}
	for what, s := range map[string]protocol.Spec{
		"no list": {Overlap: true, Folds: 2}, "no splits": {Overlap: true, Assigned: m.Groups.Digest},
		"too many": {Overlap: true, Assigned: m.Groups.Digest, Folds: dataset.MaxSplits + 1},
	} {
		refuse(what, "folds", "overlap", &m, s)
	}
	if j, err = Resolve(protocol.Spec{Overlap: true, Assigned: m.Groups.Digest, Folds: 1}, &m); err != nil ||
		!j.Split.Overlap || j.Folds != 1 {
		t.Errorf("one split: %+v, error %v", j, err)
	}
}

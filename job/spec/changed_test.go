package spec

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// TestChanged: defaults are left out, also those that follow from the data, and a job that is given the rest has all
// settings.
func TestChanged(t *testing.T) {
	dense, sparse := testManifest(t, 300), testManifest(t, 300)
	dense.NonZeros = int64(dense.Rows * dense.Features)
	sparse.NonZeros = 1
	for _, m := range []*dataset.Manifest{dense, sparse} {
		for _, a := range registry.All() {
			m := *m
			m.LabelType = learnt(a)
			sets := []map[string]string{nil, {"preset": "auto"}, {"preset": "paper"}}
			for _, p := range a.Params() {
				if len(p.Words) > 1 {
					sets = append(sets, map[string]string{p.Name: p.Words[0]}, map[string]string{p.Name: p.Words[1]})
				}
			}
			for i, set := range sets {
				j, err := Resolve(protocol.Spec{Algorithm: a.Name(), Set: set}, &m)
				if err != nil {
					continue // a word that the data do not allow
				}
				all := Settings(j.Params)
				for _, on := range [][]*dataset.Manifest{{&m}, {dense, sparse}, nil} {
					if on != nil && a.Predicts() != algorithms.Distribution {
						on = []*dataset.Manifest{&m}
					}
					changed := Changed(a.Name(), all, on...)
					if i == 0 && len(on) == 1 && len(changed) > 0 || on == nil && len(changed) != len(all) {
						t.Errorf("%s: %v is listed of the defaults", a.Name(), changed)
					}
					again := make(map[string]string)
					for _, p := range changed {
						again[p.Key] = p.Value
					}
					k, err := Resolve(protocol.Spec{Algorithm: a.Name(), Set: again}, &m)
					if err != nil || string(k.Params) != string(j.Params) {
						t.Errorf("%s, %v: with %v it is %s, not %s, error %v", a.Name(), set, changed, k.Params, j.Params, err)
					}
				}
			}
		}
	}
	j, err := Resolve(protocol.Spec{Algorithm: "ensemble", Set: map[string]string{"members": "structrf:trees=7,aa-knn"}},
		dense)
	if err != nil {
		t.Fatal(err)
	}
	if got := Changed("ensemble", Settings(j.Params), dense); len(got) != 1 ||
		got[0] != (param.Pair{Key: "members", Value: "structrf:trees=7,aa-knn"}) {
		t.Errorf("%v", got)
	}
	// A value that is the default of other data is listed.
	j, err = Resolve(protocol.Spec{Set: map[string]string{"scaling": "none"}}, dense)
	if err != nil {
		t.Fatal(err)
	}
	if got := Changed("ldlf", Settings(j.Params), dense); !slices.Contains(got,
		param.Pair{Key: "scaling", Value: "none"}) {
		t.Errorf("%v", got)
	}
	if got := Settings([]byte("[]")); got != nil {
		t.Errorf("%v", got)
	}
}

// TestComplete: a job has a value for each setting, even if its JSON form leaves the setting out. A job that is given
// these values has the same settings.
func TestComplete(t *testing.T) {
	m := testManifest(t, 300)
	for _, a := range registry.All() {
		m := *m
		m.LabelType = learnt(a)
		for _, preset := range []string{"", "auto", "paper"} {
			set := map[string]string{}
			if preset != "" {
				set["preset"] = preset
			}
			j, err := Resolve(protocol.Spec{Algorithm: a.Name(), Set: set}, &m)
			if err != nil {
				t.Fatal(err)
			}
			params := a.Params()
			all, again := Complete(params, j.Params, set), make(map[string]string)
			if len(all) != len(params) {
				t.Fatalf("%s, preset %q: %d values of %d settings", a.Name(), preset, len(all), len(params))
			}
			for i, p := range all {
				if p.Key != params[i].Name || p.Key == "preset" && preset != "" && p.Value != preset {
					t.Errorf("%s, preset %q: setting %d is %v", a.Name(), preset, i, p)
				}
				again[p.Key] = p.Value
			}
			k, err := Resolve(protocol.Spec{Algorithm: a.Name(), Set: again}, &m)
			if err != nil || string(k.Params) != string(j.Params) {
				t.Errorf("%s, preset %q: with %v it is %s, not %s, error %v", a.Name(), preset, all, k.Params, j.Params, err)
			}
		}
	}
	if all := Complete(nil, json.RawMessage("[]"), nil); all != nil {
		t.Errorf("no JSON object: %v", all)
	}
}

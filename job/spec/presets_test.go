package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/protocol"
)

// learnt returns labels that an algorithm can learn.
func learnt(a algorithms.Algorithm) (t dataset.LabelType) {
	switch a.Predicts() {
	case algorithms.Number:
		t.Scale = &dataset.Scale{True: dataset.TrueExpected}
	case algorithms.Targets:
		t.Bounds = new(dataset.Bounds)
	}
	return t
}

// TestPresets: every algorithm has both presets, which differ, and auto is its default.
func TestPresets(t *testing.T) {
	for _, a := range registry.All() {
		m := testManifest(t, 300)
		m.LabelType = learnt(a)
		resolved := make(map[string]string)
		for _, preset := range []string{"", "auto", "paper"} {
			s := protocol.Spec{Algorithm: a.Name()}
			if preset != "" {
				s.Set = map[string]string{"preset": preset}
			}
			j, err := Resolve(s, m)
			if err != nil {
				t.Errorf("%s, preset %q: %v", a.Name(), preset, err)
				continue
			}
			resolved[preset] = string(j.Params)
		}
		if resolved[""] != resolved["auto"] {
			t.Errorf("%s: the default is %s, and preset auto is %s", a.Name(), resolved[""], resolved["auto"])
		}
		if resolved["auto"] == resolved["paper"] {
			t.Errorf("%s: both presets are %s", a.Name(), resolved["auto"])
		}
	}
}

// TestPresetTexts: what help says of the defaults of a preset is right. A text that is a value is the value of a job,
// and no text names the other preset.
func TestPresetTexts(t *testing.T) {
	for _, a := range registry.All() {
		m := testManifest(t, 300)
		m.LabelType = learnt(a)
		for _, preset := range []string{"auto", "paper"} {
			j, err := Resolve(protocol.Spec{Algorithm: a.Name(), Set: map[string]string{"preset": preset}}, m)
			if err != nil {
				t.Fatal(err)
			}
			var resolved map[string]any
			if err := json.Unmarshal(j.Params, &resolved); err != nil {
				t.Fatal(err)
			}
			for _, p := range a.Params() {
				text := p.Of(preset)
				if p.Name == "preset" || p.ItemKey != "" {
					continue
				}
				if text == "" || strings.Contains(text, "auto: ") || strings.Contains(text, "paper: ") {
					t.Errorf("%s, preset %s: the default of %s is %q", a.Name(), preset, p.Name, text)
				}
				want, err := p.Parse(text)
				if got, ok := resolved[p.Name]; err == nil && ok && fmt.Sprint(got) != fmt.Sprint(want) {
					if n, isInt := want.(int64); !isInt || got != float64(n) {
						t.Errorf("%s, preset %s: %s is %v, and help says %q", a.Name(), preset, p.Name, got, text)
					}
				}
			}
		}
	}
}

// TestPresetSettings: jobs of these presets have the settings that they had before there were presets, and so the same
// digests.
func TestPresetSettings(t *testing.T) {
	m := testManifest(t, 300)
	for _, c := range []struct{ name, preset, want string }{
		{"structrf", "paper",
			`{"trees":50,"max_depth":20,"sampling_ratio":0.8,"min_samples":20,"features":"all","step":"exhaustive","alpha":0.25,"beta":8}`},
		{"rf", "paper",
			`{"trees":50,"max_depth":20,"sampling_ratio":0.8,"min_samples":20,"features":"all","step":"exhaustive","alpha":0.25,"beta":8}`},
		{"dldl", "auto",
			`{"features":"mlp","hidden":"128","dropout":0.5,"layer_norm":false,"shape":"none","flip":false,"shift":0,"crop":0,"channels":"none","kernel":0,"stride":0,"padding":0,"pool":0,"pooling":"max","freeze":"none","rates":"none","init_from":"none","init_layers":"all","bias":true,"scaling":"standard","batch_size":64,"optimizer":"adam","learning_rate":0.001,"learning_rate_step":0,"learning_rate_decay":0.5,"warmup":0,"cosine":false,"momentum":0.9,"weight_decay":0.001,"validation_fraction":0.1,"validation_steps":50,"patience":15,"refit":true,"steps":25000}`},
	} {
		j, err := Resolve(protocol.Spec{Algorithm: c.name, Set: map[string]string{"preset": c.preset}}, m)
		if err != nil || string(j.Params) != c.want {
			t.Errorf("%s, preset %s: %s, error %v", c.name, c.preset, j.Params, err)
		}
	}
}

// TestDefaultMembers: datasets of few rows have neighbours and pairs of labels as members, the others boosted trees and
// fewer features in structrf. If bins times labels are more than 2^22, the boosted trees keep no histograms.
func TestDefaultMembers(t *testing.T) {
	m := testManifest(t, 300)
	members := func(rows, features int) string {
		t.Helper()
		m := *m
		m.Rows, m.Features, m.NonZeros = rows, features, int64(rows*features)
		j, err := Resolve(protocol.Spec{Algorithm: "ensemble"}, &m)
		if err != nil {
			t.Fatal(err)
		}
		var c struct{ Members string }
		if err := json.Unmarshal(j.Params, &c); err != nil {
			t.Fatal(err)
		}
		return c.Members
	}
	for rows, want := range map[int]struct{ features, others string }{
		2000: {"all", "aa-knn:preset=auto:k=auto:scaling=standard," +
			"df-ldl:preset=paper:bias=false:scaling=none:k=5:min_samples=1:l2=0:decay=fixed:iterations=50:tolerance=1e-7:ftol=0:validation_fraction=0:validation_interval=10:patience=5"},
		2001: {"0.33", "ldlboost:preset=auto:rounds=500:learning_rate=0.1:grow=level:max_depth=6:leaves=64:leaf_rows=20:" +
			"bins=64:hessian=diagonal:l2=1:min_gain=0:row_fraction=1:feature_fraction=1:start=mean:" +
			"validation_fraction=0.1:patience=20:refit=true"},
	} {
		got := members(rows, m.Features)
		if got != `structrf:trees=200:max_depth=20:sampling_ratio=0.8:min_samples=5:features=`+want.features+
			`:step=exhaustive:alpha=0.25:beta=8,ldlf:preset=auto:trees=5:depth=7:outputs=128:bias=true:features=linear:hidden=none:dropout=0:layer_norm=false:shape=none:flip=false:shift=0:crop=0:channels=none:kernel=0:stride=0:padding=0:pool=0:pooling=max:freeze=none:rates=none:init_from=none:init_layers=all:scaling=standard:batch_size=128:optimizer=sgd:learning_rate=4:learning_rate_step=0:learning_rate_decay=0.5:warmup=0:cosine=false:momentum=0.9:weight_decay=0.00001:init=normal:init_std=0.5773502691896258:leaf_iterations=20:leaf_batches=15:leaf_first=true:validation_fraction=0.2:validation_margin=0:patience=10:refit=true:shrink=true:steps=25000:strategy=joint:reset_momentum=false:own_units=false,`+want.others {
			t.Errorf("%d rows: %s", rows, got)
		}
	}
	most := 1 << 20 / (64 * m.Labels) // features
	for features, want := range map[int]string{most: ",ldlboost:", most + 1: ",ldlogitboost:preset=auto:"} {
		if got := members(2001, features); !strings.Contains(got, want) {
			t.Errorf("%d features: %s", features, got)
		}
	}
}

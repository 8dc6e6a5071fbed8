package dldl

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
)

// TestManySamples: the course of training follows from the number of samples, unless it is given. Preset paper and
// convolutions have the same course at any number.
func TestManySamples(t *testing.T) {
	resolve := func(rows int, given param.Values) *Config {
		m := &dataset.Manifest{Rows: rows, Features: 64, Labels: 6, NonZeros: int64(rows) * 64,
			Shape: dataset.Shape{Channels: 1, Height: 8, Width: 8}}
		r, err := New().Resolve(given, m)
		if err != nil {
			t.Fatal(err)
		}
		c, err := settings.Parse(r.Params)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	few, many, most := resolve(19_999, nil), resolve(20_000, nil), resolve(1_000_000, nil)
	want := *few
	want.BatchSize, want.LearningRate, want.Cosine, want.Network.Dropout, want.WeightDecay = 128, 0.02, true, 0, 0
	want.Steps, want.ValidationSteps, want.Patience, want.Refit = 10_000, 500, 1000, false
	if *many != want || few.LearningRate != 0.001 || few.Network.Dropout != 0.5 || !few.Refit {
		t.Errorf("20,000 samples: %+v, want %+v", *many, want)
	}
	if want.Steps, want.ValidationFraction = 40_000, 0.01; *most != want {
		t.Errorf("1,000,000 samples: %+v, want %+v", *most, want)
	}
	if c := resolve(20_000, param.Values{"dropout": 0.25, "learning_rate": 0.5,
		"refit": true}); c.Network.Dropout != 0.25 || c.LearningRate != 0.5 || !c.Refit {
		t.Errorf("given settings are not kept: %+v", *c)
	}
	for _, given := range []param.Values{{"features": network.Conv}, {"preset": "paper"}} {
		few, many := resolve(19_968, given), resolve(20_000, given)
		if many.LearningRate != few.LearningRate || many.Cosine || many.Network.Dropout != few.Network.Dropout {
			t.Errorf("%v: %+v, with fewer samples %+v", given, *many, *few)
		}
	}
}

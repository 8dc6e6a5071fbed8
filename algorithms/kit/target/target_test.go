package target_test

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/kit/target"
	"github.com/coppice-ldl/coppice/dataset"
)

type config struct{ Scale target.Scale }

var settings = target.Settings(func(c *config) *target.Scale { return &c.Scale })

// fill resolves settings for a dataset whose labels are a scale; nil: they are not.
func fill(given param.Values, of *dataset.Scale) (*config, error) {
	c, m := new(config), &dataset.Manifest{LabelType: dataset.LabelType{Scale: of}}
	if err := settings.Fill(c, given, "test"); err != nil {
		return nil, err
	}
	c.Scale.Fill(given, m)
	if err := settings.Check(c); err != nil {
		return nil, err
	}
	return c, c.Scale.Fits(m, "test")
}

// TestScaleOfTheDataset: the settings are the dataset's, and others are refused by name.
func TestScaleOfTheDataset(t *testing.T) {
	of := &dataset.Scale{Low: -5, True: dataset.TrueExpected}
	c, err := fill(nil, of)
	if err != nil || c.Scale != (target.Scale{Low: -5, True: "expected"}) {
		t.Fatalf("%+v, error %v", c, err)
	}
	if again, err := fill(settings.Values(c), of); err != nil || *again != *c {
		t.Errorf("given again: %+v, error %v", again, err)
	}
	for name, value := range map[string]any{"scale_low": int64(-4), "scale_true": "mode"} {
		_, err := fill(param.Values{name: value}, of)
		var wrong *param.Error
		if !errors.As(err, &wrong) || wrong.Name != name {
			t.Errorf("%s %v: error %v", name, value, err)
		}
	}
	if _, err := fill(nil, nil); !errors.Is(err, target.ErrNoScale) {
		t.Errorf("no scale: error %v", err)
	}
}

// TestNumbers: a row has its exact number, or one that is read off its labels, and an interval.
func TestNumbers(t *testing.T) {
	r := &dataset.Rows{N: 2, Labels: 3, D: []float32{0.25, 0.75, 0, 0.5, 0, 0.5}, Value: []float64{4, 5.5}}
	for _, x := range []struct {
		truth  string
		number [2]float64
		high   [2]float64
	}{
		{"value", [2]float64{4, 5.5}, [2]float64{5 - 1e-9, 5.5}},
		{"mode", [2]float64{5, 4}, [2]float64{6 - 1e-9, 5 - 1e-9}},
		{"expected", [2]float64{4.75, 5}, [2]float64{4.75, 6 - 1e-9}},
	} {
		s := target.Scale{Low: 4, True: x.truth}
		for i := range 2 {
			low, high := s.Interval(r, i)
			if s.Number(r, i) != x.number[i] || low != x.number[i] || high != x.high[i] {
				t.Errorf("%s, row %d: %v in %v to %v", x.truth, i, s.Number(r, i), low, high)
			}
		}
	}
}

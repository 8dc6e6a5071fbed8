package read

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// songs is a file of targets.
const songs = "x,y_valence,y_arousal\n1,-0.5,70\n2,1.25,0\n3,0,33.5\n4,1,9\n"

// bounds are bounds of both targets.
func bounds(low, high float64) *dataset.Bounds {
	return &dataset.Bounds{Low: []float64{low}, High: []float64{high}}
}

// TestBounded: targets are read as they are, and given bounds are kept.
func TestBounded(t *testing.T) {
	path := datasettest.WriteFile(t, "songs.csv", songs)
	for _, b := range []*dataset.Bounds{nil, bounds(-1, 100)} {
		src, err := Open(path, OpenOptions{Labels: LabelOptions{Kind: dataset.Bounded, Bounds: b}})
		if err != nil {
			t.Fatal(err)
		}
		m, shards, err := importer.Build(src, importer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		of := m.LabelType.Bounds
		if of == nil || of.Given() != (b != nil) || m.Reading.Labels != dataset.Bounded ||
			len(m.Reading.Bounds) != len(of.Low) {
			t.Errorf("bounds %v of the manifest, reading %+v", of, m.Reading)
		}
		if err := m.Check(); err != nil {
			t.Error(err)
		}
		sum := float32(0)
		for _, q := range shards[0].D {
			sum += q
		}
		if sum != 114.25 {
			t.Errorf("the targets sum to %v", sum)
		}
	}
}

// TestBoundedRefuses: targets outside of the bounds, missing ones, and contradictions are refused by row and label.
func TestBoundedRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          LabelOptions
		says       string
	}{
		{"outside", songs, LabelOptions{Kind: dataset.Bounded, Bounds: bounds(-1, 60)},
			`row 0, label 1 "arousal" (counted from 0): the target 70 is outside the bounds -1 to 60`},
		{"below", songs, LabelOptions{Kind: dataset.Bounded, Bounds: bounds(0, 100)}, `row 0, label 0 "valence"`},
		{"missing", "x,y_a,y_b\n1,2,\n", LabelOptions{Kind: dataset.Bounded}, `column 2 "y_b"`},
		{"infinite", "x,y_a,y_b\n1,2,inf\n", LabelOptions{Kind: dataset.Bounded}, "+Inf is not a finite number"},
		{"equal", songs, LabelOptions{Kind: dataset.Bounded, Bounds: &dataset.Bounds{Low: []float64{-1, 3},
			High: []float64{2, 3}}}, `label 1 "arousal" (counted from 0): both bounds are 3`},
		{"too many", songs, LabelOptions{Kind: dataset.Bounded, Bounds: &dataset.Bounds{Low: []float64{1, 1, 1},
			High: []float64{2, 3, 4}}}, "there are bounds of 3 labels, but the data have 2 labels"},
		{"range", songs, LabelOptions{Kind: dataset.Bounded, Ordered: true, Low: 0, High: 1}, "--bounds says which numbers"},
		{"other labels", songs, LabelOptions{Bounds: bounds(0, 1)}, "--bounds needs --labels bounded"},
	} {
		src, err := Open(datasettest.WriteFile(t, "songs.csv", c.text), OpenOptions{Labels: c.o})
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
	}
}

// TestBoundedForModel: a file for a model has the given bounds of the model, whatever the order of its columns.
func TestBoundedForModel(t *testing.T) {
	path := datasettest.WriteFile(t, "new.csv", "y_arousal,x,y_valence\n70,1,-0.5\n")
	s := &dataset.Schema{Features: 1, Labels: 2, FeatureNames: []string{"x"}, LabelNames: []string{"valence", "arousal"},
		Bounds: &dataset.Bounds{Low: []float64{-1, 0}, High: []float64{1, 100}}}
	read := func(o LabelOptions) error {
		src, _, err := OpenFor(path, OpenOptions{Labels: o}, s)
		if err == nil {
			_, _, err = importer.Build(src, importer.Options{})
		}
		return err
	}
	if err := read(LabelOptions{Kind: dataset.Bounded}); err != nil {
		t.Error(err)
	}
	var option *dataset.OptionError
	if err := read(LabelOptions{Kind: dataset.Bounded, Bounds: bounds(0, 1)}); !errors.As(err, &option) {
		t.Errorf("other bounds: error %v", err)
	}
	s.Bounds = &dataset.Bounds{Low: []float64{-1, 0}, High: []float64{1, 60}}
	err := read(LabelOptions{Kind: dataset.Bounded})
	datasettest.MustContain(t, err, `row 0, label 0 "arousal"`, "outside the bounds 0 to 60")
}

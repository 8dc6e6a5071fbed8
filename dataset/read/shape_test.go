package read

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
)

// TestShapeOfArrays: arrays of three and four dimensions are images, whose pixels stand in the
// order of the array.
func TestShapeOfArrays(t *testing.T) {
	values := make([]float32, 24)
	for i := range values {
		values[i] = float32(i)
	}
	for shape, want := range map[string]dataset.Shape{"(2, 3, 4)": {Channels: 1, Height: 3, Width: 4},
		"(2, 2, 2, 3)": {Channels: 2, Height: 2, Width: 3}, "(2, 12)": {}} {
		src, err := OpenBytes(t, "a.npz", NpzBytes("features", NpyBytes("<f4", false, shape, values), "labels",
			NpyBytes("<f4", false, "(2,)", []float32{1, 1})), OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		info, rows := src.Info(), datasettest.Collect(t, src)
		if info.Shape != want || info.Features != 12 ||
			strings.Contains(info.Notes[0].String(), "is an image of") != (want.Channels > 1) {
			t.Errorf("%s: %+v", shape, info)
		}
		if rows[1].Values[5] != 17 {
			t.Errorf("%s: row 1 is %v", shape, rows[1].Values)
		}
		m, _, err := importer.Build(src, importer.Options{})
		if err != nil || m.Shape != want || m.Check() != nil {
			t.Errorf("%s: %v, %+v", shape, err, m)
		}
	}
}

func TestShapeRefused(t *testing.T) {
	labels := NpyBytes("<f4", false, "(2,)", []float32{1, 1})
	for name, c := range map[string]struct {
		features []byte
		shape    dataset.Shape
		says     string
	}{
		"other size": {NpyBytes("<f4", false, "(2, 12)", make([]float32, 24)), dataset.Shape{Channels: 1, Height: 2,
			Width: 5}, "the shape 1x2x5 has 10 numbers, but a sample has 12 features"},
		"Fortran":   {NpyBytes("<f4", true, "(2, 3, 4)", make([]float32, 24)), dataset.Shape{}, "ascontiguousarray"},
		"five":      {NpyBytes("<f4", false, "(2, 1, 1, 3, 4)", make([]float32, 24)), dataset.Shape{}, "5 dimensions"},
		"too large": {NpyBytes("<f4", false, "(2, 999999, 999999, 999999)", []float32{1}), dataset.Shape{}, "truncated"},
		"no pixels": {NpyBytes("<f4", false, "(2, 0, 4)", []float32{1}), dataset.Shape{}, "[2 0 4]"},
	} {
		_, err := OpenBytes(t, "a.npz", NpzBytes("features", c.features, "labels", labels), OpenOptions{Shape: c.shape})
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "a.npz") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestShapeInManifest: the shape is kept, is no part of the digest, and manifests of other data have the
// bytes that they had.
func TestShapeInManifest(t *testing.T) {
	plain, _, err := importer.Build(generate.Artificial(20, 1), importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	images := pipelineOf(generate.Artificial(20, 1))
	images.info.Shape = dataset.Shape{Channels: 3, Height: 1, Width: 1}
	shaped, _, err := importer.Build(images, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if plain.Digest() != shaped.Digest() {
		t.Error("the shape changes the digest")
	}
	if err := shaped.Same(plain); err == nil || !strings.Contains(err.Error(), "3x1x1") {
		t.Errorf("another shape under the same name: %v", err)
	}
	b, _ := json.Marshal(plain)
	if strings.Contains(string(b), "shape") {
		t.Errorf("%s", b)
	}
	b, _ = json.Marshal(shaped)
	var back dataset.Manifest
	if err := json.Unmarshal(b, &back); err != nil || back.Shape != (dataset.Shape{Channels: 3, Height: 1, Width: 1}) ||
		back.Check() != nil {
		t.Errorf("%v, %s", err, b)
	}
	if back.Shape.Width = 2; back.Check() == nil {
		t.Error("a shape of other features passes")
	}
	if err := json.Unmarshal([]byte(`{"shape": "3x1"}`), &back); err == nil {
		t.Error("half a shape is read")
	}
}

// TestShapeOfSelectedFeatures: some features of an image are no image.
func TestShapeOfSelectedFeatures(t *testing.T) {
	b := NpzBytes("features", NpyBytes("<f4", false, "(2, 2, 2)", make([]float32, 8)), "labels",
		NpyBytes("<f4", false, "(2,)", []float32{1, 1}))
	src, err := OpenBytes(t, "a.npz", b, OpenOptions{Drop: []string{"0"}})
	if err != nil || src.Info().Shape != (dataset.Shape{}) {
		t.Errorf("%v, %v", err, src)
	}
}

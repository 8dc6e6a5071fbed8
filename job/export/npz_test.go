package export_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/export"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
)

// shaped is a model without predictions.
type shaped struct{ algorithms.Model }

func (shaped) Shape() (features, labels int) { return 2, 3 }

// modelWith returns a model with tensors.
func modelWith(tensors []algorithms.Tensor) *predict.Model {
	return &predict.Model{Model: shaped{}, File: &modelfile.File{Algorithm: "rf", Digest: "d", Tensors: tensors},
		Provenance: &pipeline.Provenance{Job: &round.Job{Algorithm: "rf", Seed: math.MaxUint64},
			LabelNames: []string{"ü", "a\"b", "c"}}}
}

// tensorsOf draws tensors of all types and shapes. -0 and the greatest numbers are among the values.
func tensorsOf(r *rapid.T) (all []algorithms.Tensor) {
	for i := range rapid.IntRange(0, 4).Draw(r, "tensors") {
		t := algorithms.Tensor{Name: fmt.Sprintf("%d/t.%d", i%2, i),
			Dims: rapid.SliceOfN(rapid.IntRange(0, 3), 0, 3).Draw(r, "dims")}
		n := 1
		for _, d := range t.Dims {
			n *= d
		}
		switch rapid.IntRange(0, 2).Draw(r, "type") {
		case 0:
			t.U32 = rapid.SliceOfN(rapid.Uint32(), n, n).Draw(r, "values")
		case 1:
			t.F32 = rapid.SliceOfN(rapid.Float32(), n, n).Draw(r, "values")
		default:
			t.F64 = rapid.SliceOfN(rapid.Float64(), n, n).Draw(r, "values")
		}
		all = append(all, t)
	}
	return all
}

// bits returns the values of a tensor as bits of float64, which tell -0 from 0.
func bits(t *algorithms.Tensor) (all []uint64) {
	for _, v := range t.U32 {
		all = append(all, math.Float64bits(float64(v)))
	}
	for _, v := range t.F32 {
		all = append(all, math.Float64bits(float64(v)))
	}
	for _, v := range t.F64 {
		all = append(all, math.Float64bits(v))
	}
	return all
}

// TestNPZ: the archive has each tensor with its name, shape, type and bits.
func TestNPZ(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := modelWith(tensorsOf(r))
		var b bytes.Buffer
		if err := export.NPZ(&b, m); err != nil {
			r.Fatal(err)
		}
		z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil || len(z.File) != len(m.File.Tensors)+1 {
			r.Fatalf("%v, %d arrays", err, len(z.File))
		}
		for i, entry := range z.File {
			in, err := entry.Open()
			if err != nil {
				r.Fatal(err)
			}
			a, err := npy.NewReader(in)
			if err != nil {
				r.Fatal(err)
			}
			name := strings.TrimSuffix(entry.Name, ".npy")
			if i == len(m.File.Tensors) {
				texts, err := a.ReadStrings()
				var about export.About
				if name != "about" || err != nil || json.Unmarshal([]byte(texts[0]), &about) != nil ||
					about.Spec.Seed != math.MaxUint64 || !slices.Equal(about.LabelNames, m.Provenance.LabelNames) {
					r.Fatalf("%s: %q, %v", name, texts, err)
				}
				continue
			}
			tensor := &m.File.Tensors[i]
			want := bits(tensor)
			values := make([]float64, len(want))
			err = a.ReadFloats(values)
			got := bits(&algorithms.Tensor{F64: values})
			if err != nil || name != tensor.Name || !slices.Equal(a.Shape, tensor.Dims) || !slices.Equal(got, want) {
				r.Fatalf("%s: %v, shape %v, %v, want %v", name, err, a.Shape, got, want)
			}
			if kind := map[bool]string{true: "uint32", false: "float"}[tensor.U32 != nil]; !strings.HasPrefix(a.Type(), kind) {
				r.Fatalf("%s has the type %s", name, a.Type())
			}
		}
	})
}

// TestJSON: the text has the same bits, also of -0.
func TestJSON(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := modelWith(tensorsOf(r))
		var b bytes.Buffer
		if err := export.JSON(&b, m); err != nil {
			r.Fatal(err)
		}
		var all struct {
			Tensors map[string]struct {
				Shape []int
				Data  []float64
			}
		}
		if err := json.Unmarshal(b.Bytes(), &all); err != nil {
			r.Fatalf("%v\n%s", err, &b)
		}
		for i := range m.File.Tensors {
			tensor := &m.File.Tensors[i]
			got := all.Tensors[tensor.Name]
			for k, v := range got.Data {
				if tensor.F32 != nil {
					got.Data[k] = float64(float32(v))
				}
			}
			if !slices.Equal(got.Shape, tensor.Dims) || !slices.Equal(bits(&algorithms.Tensor{F64: got.Data}), bits(tensor)) {
				r.Fatalf("%s: %+v, want %+v", tensor.Name, got, tensor)
			}
		}
	})
}

// TestRefusals: JSON has no infinite numbers, and no tensor may have the name of the description. An error of the
// writer is returned.
func TestRefusals(t *testing.T) {
	infinite := modelWith([]algorithms.Tensor{{Name: "w", Dims: []int{1}, F64: []float64{math.Inf(1)}}})
	if err := export.JSON(new(bytes.Buffer), infinite); err == nil || !strings.Contains(err.Error(), "export as npz") {
		t.Errorf("got %v", err)
	}
	if err := export.NPZ(new(bytes.Buffer), infinite); err != nil {
		t.Error(err)
	}
	named := modelWith([]algorithms.Tensor{{Name: "about", Dims: []int{1}, F64: []float64{1}}})
	if err := export.NPZ(new(bytes.Buffer), named); err == nil {
		t.Error("a tensor called about is accepted")
	}
	for _, f := range export.Formats()[:2] {
		if _, err := f.Write(broken{}, infinite); err == nil {
			t.Errorf("%s: the error of the writer is lost", f.Name)
		}
	}
	for path, want := range map[string]string{"a.NPZ": "npz", "b.json": "json", "c": "", "d.npz.gz": ""} {
		if f, _ := export.FormatOf("", path); f.Name != want {
			t.Errorf("%s: format %q, want %q", path, f.Name, want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, fmt.Errorf("no space") }

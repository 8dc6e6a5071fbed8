package network

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/internal/num"
)

// small is a network of an image of 1x4x4: a convolution with a norm, a hidden layer, three outputs.
func small() *Network {
	c := Config{Features: Conv, Shape: "1x4x4", Channels: "2", Kernel: 3, Stride: 1, Padding: 1, Pool: 2, Pooling: max2d,
		Hidden: "5", LayerNorm: true}
	return New(Plan{Layers: c.Layers(16, true, Output{Units: 3, Start: He})})
}

// tensorsOf returns the tensors of a network as a model file has them, all of their values
// different, with others around them.
func tensorsOf(f *Network) []algorithms.Tensor {
	all, next := []algorithms.Tensor{{Name: "settings", Dims: []int{1}, U32: []uint32{1}}}, float32(1)
	for _, l := range f.Layout() {
		t := algorithms.Tensor{Name: l.Name, Dims: l.Dims}
		for range l.Size() {
			t.F32, next = append(t.F32, next), next+0.25
		}
		all = append(all, t)
	}
	return append(all, algorithms.Tensor{Name: "q", Dims: []int{1}, F32: []float32{7}},
		algorithms.Tensor{Name: "scaling.shift", Dims: []int{1}, F64: []float64{7}})
}

// modelOf returns a model file.
func modelOf(tensors ...algorithms.Tensor) []byte {
	b, _ := modelfile.Encode("dldl", tensors, []byte("{}"))
	return b
}

// archive is an .npz archive; each writes one array with a name.
func archive(t testing.TB, each func(a *npy.Archive) error) []byte {
	t.Helper()
	var b bytes.Buffer
	a := npy.NewArchive(&b)
	if err := errors.Join(each(a), a.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// doubles writes a tensor as an array of float64.
func doubles(a *npy.Archive, v *algorithms.Tensor) error {
	w, err := a.Doubles(v.Name, v.Dims...)
	if err != nil {
		return err
	}
	for _, x := range v.F32 {
		if err := w.Write([]float64{float64(x)}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// columnMajor is an .npz archive with one array of float32 whose first index runs fastest, as
// NumPy writes a transposed array.
func columnMajor(t testing.TB, v *algorithms.Tensor) []byte {
	t.Helper()
	head := fmt.Sprintf("{'descr': '<f4', 'fortran_order': True, 'shape': (%d, %d), }\n", v.Dims[0], v.Dims[1])
	file := append([]byte("\x93NUMPY\x01\x00"), byte(len(head)), byte(len(head)>>8))
	file = append(file, head...)
	for j := range v.Dims[1] {
		for i := range v.Dims[0] {
			x := math.Float32bits(v.F32[i*v.Dims[1]+j])
			file = append(file, byte(x), byte(x>>8), byte(x>>16), byte(x>>24))
		}
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(v.Name + ".npy")
	if err == nil {
		_, err = w.Write(file)
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReadWeights: a model file and an archive of the same layers, in another order and of
// another type, are the same weights, and what else a model has is none.
func TestReadWeights(t *testing.T) {
	tensors := tensorsOf(small())
	fromModel, err := ReadWeights(modelOf(tensors...))
	if err != nil {
		t.Fatal(err)
	}
	layers := tensors[1 : len(tensors)-2]
	fromArrays, err := ReadWeights(archive(t, func(a *npy.Archive) error {
		for i := range layers {
			if err := doubles(a, &layers[len(layers)-1-i]); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if fromModel.Digest != fromArrays.Digest || !bytes.Equal(fromModel.File, fromArrays.File) {
		t.Errorf("digests %s and %s", fromModel.Digest, fromArrays.Digest)
	}
	again, err := DecodeWeights(fromModel.File)
	if err != nil || again.Digest != fromModel.Digest || len(again.tensors) != len(layers) {
		t.Errorf("decoded %d of %d tensors, error %v", len(again.tensors), len(layers), err)
	}
	output := layers[len(layers)-2]
	one, err := ReadWeights(columnMajor(t, &output))
	if err != nil {
		t.Fatal(err)
	}
	if got := one.find("output"); !slices.Equal(got.Dims, output.Dims) || !slices.Equal(got.F32, output.F32) {
		t.Errorf("by columns: %v, want %v", got, output)
	}
}

// TestRowMajor: three dimensions, by hand.
func TestRowMajor(t *testing.T) {
	var byFirst []float32
	for k := range 4 {
		for j := range 3 {
			for i := range 2 {
				byFirst = append(byFirst, float32(100*i+10*j+k))
			}
		}
	}
	got := rowMajor(byFirst, []int{2, 3, 4})
	for i := range 2 {
		for j := range 3 {
			for k := range 4 {
				if want := float32(100*i + 10*j + k); got[(i*3+j)*4+k] != want {
					t.Errorf("at %d %d %d: %v, want %v", i, j, k, got[(i*3+j)*4+k], want)
				}
			}
		}
	}
}

// TestGive: a network begins with what is taken, bit for bit, and with what it draws elsewhere.
func TestGive(t *testing.T) {
	f, key := small(), num.NewKey(3, "test")
	drawn := make([]float32, gradient.Parameters(f))
	f.Initialise(drawn, key)
	tensors := tensorsOf(f)
	w, err := ReadWeights(modelOf(tensors...))
	if err != nil {
		t.Fatal(err)
	}
	for _, chosen := range []string{all, "convolution1", "output,convolution1"} {
		f := small()
		c := Initial{From: w.Digest, Layers: chosen}
		if err := c.Give(f, w.File); err != nil {
			t.Fatal(err)
		}
		theta := make([]float32, len(drawn))
		f.Initialise(theta, key)
		at := 0
		for i, l := range f.Layout() {
			want := drawn[at : at+l.Size()]
			if c.takes(layerOf(l.Name)) {
				want = tensors[1+i].F32
			}
			if got := theta[at : at+l.Size()]; !slices.Equal(got, want) {
				t.Errorf("%s: %s begins with %v, want %v", chosen, l.Name, got, want)
			}
			at += l.Size()
		}
	}
}

// TestGiveErrors: what does not fit is named.
func TestGiveErrors(t *testing.T) {
	tensors := tensorsOf(small())
	for i := range tensors { // the hidden layer is of another size, the output is not there
		if tensors[i].Name == "hidden1" {
			tensors[i].Dims, tensors[i].F32 = []int{8, 4}, make([]float32, 32)
		}
	}
	tensors = slices.DeleteFunc(tensors, func(v algorithms.Tensor) bool { return strings.HasPrefix(v.Name, "output") })
	w, err := ReadWeights(modelOf(tensors...))
	if err != nil {
		t.Fatal(err)
	}
	other, err := ReadWeights(modelOf(algorithms.Tensor{Name: "hidden.relu", Dims: []int{1, 1}, F32: []float32{1}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		layers string
		file   []byte
		want   string
	}{
		{all, w.File, "init_from: hidden1 has the shape 8x4 in the weights but 8x5 in this network"},
		{"convolution1,hidden1", w.File, "init_from: hidden1 has the shape 8x4"},
		{"output", w.File, `init_layers: the weights have no layer "output"; their layers are convolution1, hidden1`},
		{"hidden2", w.File, `init_layers: layer "hidden2" does not exist; the layers are convolution1, hidden1, output`},
		{all, other.File, "init_from: the weights have no layer of this network: the weights have hidden, the network has " +
			"convolution1, hidden1, output"},
	} {
		c := Initial{From: w.Digest, Layers: x.layers}
		err := c.Fits(small().Layers, x.file)
		var about *param.Error
		if !errors.As(err, &about) || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %s", x.layers, err, x.want)
		}
	}
	c := Initial{From: w.Digest, Layers: "convolution1"}
	if err := c.Fits(small().Layers, w.File); err != nil {
		t.Errorf("without the layer of another size: %v", err)
	}
}

// TestNoWeights: a file that has none says why.
func TestNoWeights(t *testing.T) {
	nan := float32(math.NaN())
	for what, x := range map[string]struct {
		file []byte
		want string
	}{
		"text":          {[]byte("hello"), "neither a model file nor an .npz archive"},
		"a cut archive": {[]byte("PK\x03\x04 and so on"), "the .npz archive cannot be read"},
		"a forest": {modelOf(algorithms.Tensor{Name: "theta", Dims: []int{1}, F32: []float32{1}}),
			"the model of dldl has no layers such as hidden1 or output"},
		"not a number": {modelOf(algorithms.Tensor{Name: "output", Dims: []int{1}, F32: []float32{nan}}),
			"output has a value that is not finite"},
		"another name": {archive(t, func(a *npy.Archive) error {
			return doubles(a, &algorithms.Tensor{Name: "conv1.weight", Dims: []int{1}, F32: []float32{1}})
		}), `the array "conv1.weight" is not a tensor of a layer; valid names are convolution1, hidden1`},
		"twice": {archive(t, func(a *npy.Archive) error {
			v := &algorithms.Tensor{Name: "output", Dims: []int{1}, F32: []float32{1}}
			return errors.Join(doubles(a, v), doubles(a, v))
		}), "tensor output occurs twice or is not sorted by name"},
		"five dimensions": {archive(t, func(a *npy.Archive) error {
			return doubles(a, &algorithms.Tensor{Name: "output", Dims: []int{1, 1, 1, 1, 1}, F32: []float32{1}})
		}), "output: the array has 5 dimensions, want at most 4"},
		"strings": {archive(t, func(a *npy.Archive) error {
			return a.List("output", []string{"a"})
		}), "output: the array has strings"},
		"nothing": {archive(t, func(a *npy.Archive) error { return nil }), "the file has no tensors"},
		"beyond float32": {archive(t, func(a *npy.Archive) error {
			return oneDouble(a, 1e300)
		}), "output has a value that is not finite"},
		"the file itself?": {modelOf(), "the model of dldl has no layers such as hidden1 or output"},
	} {
		_, err := ReadWeights(x.file)
		if !errors.Is(err, ErrWeights) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: error %v, want %s", what, err, x.want)
		}
	}
	if _, err := DecodeWeights(modelOf(tensorsOf(small())...)); !errors.Is(err, ErrWeights) {
		t.Errorf("a model in the place of weights: error %v", err)
	}
}

func oneDouble(a *npy.Archive, x float64) error {
	w, err := a.Doubles("output", 1)
	if err != nil {
		return err
	}
	return errors.Join(w.Write([]float64{x}), w.Flush())
}

// FuzzWeights: bytes are weights or an error that wraps ErrWeights; what is read has one encoding,
// and memory follows the size of the bytes and of what they unpack to.
func FuzzWeights(f *testing.F) {
	tensors := tensorsOf(small())
	w, err := ReadWeights(modelOf(tensors...))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(modelOf(tensors...))
	f.Add(w.File)
	f.Add(archive(f, func(a *npy.Archive) error { return oneDouble(a, 2) }))
	f.Add(columnMajor(f, &tensors[len(tensors)-4]))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var w *Weights
		var err error
		// Deflate packs at most about 1:1032.
		allocs.AtMost(t, 16*1032*len(b)+1<<20, "weights", func() { w, err = ReadWeights(b) })
		if err != nil {
			if !errors.Is(err, ErrWeights) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := DecodeWeights(w.File)
		if err != nil || again.Digest != w.Digest {
			t.Fatalf("the weights are not read again: error %v", err)
		}
		same, err := newWeights(again.tensors)
		if err != nil || !bytes.Equal(same.File, w.File) {
			t.Fatalf("other bytes: error %v", err)
		}
	})
}

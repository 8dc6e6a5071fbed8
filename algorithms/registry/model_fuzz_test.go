package registry

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
)

// sealed makes a file of tensors as they stand in one, with the right sums: a file
// of an enemy, or of a program with a fault, has them too.
func sealed(tensors []byte) []byte {
	sum, tail := sha256.Sum256(tensors), sha256.Sum256(nil)
	b := append(bytes.Clone(tensors), sum[:]...)
	b = binary.LittleEndian.AppendUint64(b, 0)
	return append(b, tail[:]...)
}

// stump is the least forest: two trees, one of a single leaf.
func stump() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{4}, U32: []uint32{1, 2, 3, 2}},
		{Name: "nodes", Dims: []int{2}, U32: []uint32{3, 1}},
		{Name: "leaves", Dims: []int{2}, U32: []uint32{2, 1}},
		{Name: "gain_evaluations", Dims: []int{2}, F64: []float64{5, 0}},
		{Name: "feature", Dims: []int{4}, U32: []uint32{1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1}},
		{Name: "left", Dims: []int{4}, U32: []uint32{1, 0, 1, 0}},
		{Name: "samples", Dims: []int{4}, U32: []uint32{9, 4, 5, 9}},
		{Name: "threshold", Dims: []int{4}, F64: []float64{0.5, 0, 0, 0}},
		{Name: "gain", Dims: []int{4}, F64: []float64{0.1, 0, 0, 0}},
		{Name: "leaf", Dims: []int{3, 2}, F32: []float32{1, 0, 0.25, 0.75, 0.5, 0.5}},
	}
}

// linear is the least differentiable forest: one tree of two leaves.
func linear() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{8}, U32: []uint32{1, 1, 2, 2, 3, 2, 1, 0}},
		{Name: "phi", Dims: []int{1, 1}, U32: []uint32{1}},
		{Name: "theta", Dims: []int{4, 2}, F32: []float32{1, 2, 3, 4, 5, 6, 7, 8}},
		{Name: "q", Dims: []int{1, 2, 2}, F32: []float32{1, 0, 0.5, 0.5}},
	}
}

// boosted is the least boosted model of one number a leaf: one round of two labels.
func boosted() []algorithms.Tensor {
	trees := stump()
	trees[len(trees)-1] = algorithms.Tensor{Name: "leaf", Dims: []int{3, 1}, F32: []float32{1, -0.25, 0.5}}
	return append([]algorithms.Tensor{
		trees[0],
		{Name: "start", Dims: []int{2}, F64: []float64{-1, -0.5}},
		{Name: "factor", Dims: []int{1}, F64: []float64{0.05}},
	}, trees[1:]...)
}

// perceptrons is the least neural decision forest: a tree of two leaves and a network without hidden units.
func perceptrons() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{7}, U32: []uint32{1, 1, 3, 2, 2, 1, 1}},
		{Name: "hidden", Dims: []int{1}, U32: []uint32{0}},
		{Name: "inputs", Dims: []int{1, 2}, U32: []uint32{0, 2}},
		{Name: "shift", Dims: []int{1, 2}, F32: []float32{1, 2}},
		{Name: "scale", Dims: []int{1, 2}, F32: []float32{1, 0.5}},
		{Name: "weights", Dims: []int{3}, F32: []float32{1, -1, 0.5}},
		{Name: "nodes", Dims: []int{1}, U32: []uint32{3}},
		{Name: "leaves", Dims: []int{1}, U32: []uint32{2}},
		{Name: "gain_evaluations", Dims: []int{1}, F64: []float64{7}},
		{Name: "feature", Dims: []int{3}, U32: []uint32{0, 1<<32 - 1, 1<<32 - 1}},
		{Name: "left", Dims: []int{3}, U32: []uint32{1, 0, 1}},
		{Name: "samples", Dims: []int{3}, U32: []uint32{9, 4, 5}},
		{Name: "threshold", Dims: []int{3}, F64: []float64{0, 0, 0}},
		{Name: "gain", Dims: []int{3}, F64: []float64{0.1, 0, 0}},
		{Name: "leaf", Dims: []int{2, 2}, F32: []float32{1, 0, 0.25, 0.75}},
	}
}

// entropy is the least maximum-entropy model: a feature, two labels.
func entropy() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{3}, U32: []uint32{1, 1, 2}},
		{Name: "weights", Dims: []int{2, 2}, F64: []float64{0.5, -0.5, 0, 0.25}},
	}
}

// convolutions is the least network with a convolution: of 1x1 on an image of 1x1x2, to two outputs.
func convolutions() []algorithms.Tensor {
	return []algorithms.Tensor{
		{Name: "settings", Dims: []int{4}, U32: []uint32{1, 2, 2, 0}},
		{Name: "layers", Dims: []int{4, 5}, U32: []uint32{0, 1, 1, 2, 1, 2, 1, 1, 1, 0, 3, 0, 0, 0, 0, 1, 2, 0, 0, 0}},
		{Name: "convolution1", Dims: []int{1, 1, 1, 1}, F32: []float32{-1}},
		{Name: "convolution1.bias", Dims: []int{1}, F32: []float32{0.5}},
		{Name: "output", Dims: []int{2, 2}, F32: []float32{1, 2, 3, 4}},
		{Name: "output.bias", Dims: []int{2}, F32: []float32{0, 1}},
	}
}

// FuzzModel reads model files as "coppice model", prediction and evaluation do:
// what comes out has the digest of its tensors and predicts a row, and memory
// follows the file's size.
func FuzzModel(f *testing.F) {
	for name, tensors := range map[string][]algorithms.Tensor{
		"ldlf": linear(), "structrf": stump(), "rf": stump(), "ldlogitboost": boosted(), "ndf": perceptrons(),
		"sa-iis": entropy(), "dldl": convolutions(),
	} {
		file, _ := modelfile.Encode(name, tensors, nil)
		body := file[:len(file)-2*sha256.Size-8]
		if !bytes.Equal(sealed(body), file) {
			f.Fatal("the seed is not sealed as a file is")
		}
		if _, _, err := Model(file); err != nil {
			f.Fatalf("%s: %v", name, err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, b := range [][]byte{body, sealed(body)} {
			var file *modelfile.File
			var m algorithms.Model
			var err error
			allocs.AtMost(t, 64*len(b)+16<<20, "a model file", func() { file, m, err = Model(b) })
			if err != nil {
				if !errors.Is(err, modelfile.ErrCorrupt) && !strings.Contains(err.Error(), "is unknown; the algorithms are") {
					t.Fatalf("error %v", err)
				}
				continue
			}
			if file.Numerics == round.Numerics && modelfile.Digest(file.Algorithm, m.Tensors()) != file.Digest {
				t.Fatal("the model's tensors are not the file's")
			}
			predict(m)
		}
	})
}

func predict(m algorithms.Model) {
	features, labels := m.Shape()
	m.Describe()
	if features > 1<<12 || labels > 1<<12 {
		return
	}
	r := &dataset.Rows{N: 1, Features: features, Labels: labels, Row: []uint32{0}, X: make([]float32, features),
		D: make([]float32, labels)}
	m.Predict(make([]float32, labels), []dataset.RowRef{{}}, func(uint32) *dataset.Rows { return r }, m.NewScratch())
}

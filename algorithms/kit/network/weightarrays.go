package network

import (
	"archive/zip"
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset/npy"
)

// maxArrays bounds the arrays of an archive: five for each of the layers that a Config can have.
const maxArrays = 5 * (2*mostLayers + 1)

// maxDims is the greatest number of dimensions of a layer's tensor.
const maxDims = 4

var errArrays = errors.New("together, the arrays are larger than the largest possible network")

// readArrays reads the arrays of an .npz archive as float32. An error names the array.
func readArrays(b []byte) ([]algorithms.Tensor, error) {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("the .npz archive cannot be read: %w", err)
	}
	if len(z.File) > maxArrays {
		return nil, fmt.Errorf("the .npz archive has %d arrays, at most %d are allowed", len(z.File), maxArrays)
	}
	var tensors []algorithms.Tensor
	left := MaxValues
	for _, f := range z.File {
		t := algorithms.Tensor{Name: strings.TrimSuffix(f.Name, ".npy")}
		if !tensorNames.MatchString(t.Name) {
			return nil, fmt.Errorf("the array %.80q is not a tensor of a layer; valid names are %s", t.Name, namesText)
		}
		if err := readArray(&t, f, left); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		left -= len(t.F32)
		tensors = append(tensors, t)
	}
	return tensors, nil
}

// readArray reads one array of at most so many values.
func readArray(t *algorithms.Tensor, f *zip.File, most int) error {
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	r, err := npy.NewReader(bufio.NewReader(in))
	if err != nil {
		return err
	}
	n := 1
	t.Dims = r.Shape
	if len(t.Dims) > maxDims {
		return fmt.Errorf("the array has %d dimensions, want at most %d", len(t.Dims), maxDims)
	}
	for _, d := range t.Dims {
		if d < 1 || n > most/d {
			return fmt.Errorf("the array has the shape %s: %w", times(t.Dims), errArrays)
		}
		n *= d
	}
	var block [1 << 10]float64
	for len(t.F32) < n {
		k := min(len(block), n-len(t.F32))
		if err := r.ReadFloats(block[:k]); err != nil {
			return err
		}
		for _, x := range block[:k] {
			t.F32 = append(t.F32, float32(x))
		}
	}
	if r.Fortran {
		t.F32 = rowMajor(t.F32, t.Dims)
	}
	return r.End()
}

// rowMajor returns values whose first index runs fastest with the last one running fastest.
func rowMajor(values []float32, dims []int) []float32 {
	out, index := make([]float32, len(values)), make([]int, len(dims))
	for _, x := range values {
		at := 0
		for i, d := range dims {
			at = at*d + index[i]
		}
		out[at] = x
		for i := range index {
			if index[i]++; index[i] < dims[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

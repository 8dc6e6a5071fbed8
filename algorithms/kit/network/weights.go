package network

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/internal/num"
)

// ErrWeights is wrapped by every error about a file that has no weights of layers.
var ErrWeights = errors.New("the initial weights cannot be used")

// weightsName stands in a file of weights in the place of an algorithm.
const weightsName = "weights"

// Weights are tensors of layers by name, which a network may begin from: see DESIGN.md.
type Weights struct {
	File   []byte // the one encoding of these tensors
	Digest string // SHA-256 of File, in hex

	tensors []algorithms.Tensor // in the order of their names
}

// tensorNames are the names of layers' tensors: those of Config.Layers, and of Hidden.
var tensorNames = regexp.MustCompile(`^((convolution|hidden)[1-9][0-9]{0,3}|output)(\.norm)?(\.bias)?$|^hidden\.(relu|logistic|bias)$`)

// namesText says what tensors are called, for messages.
const namesText = "convolution1, hidden1, output and so on, optionally followed by .bias, .norm or .norm.bias"

// ReadWeights reads the weights of a file's bytes: a model file, of whose tensors those of layers
// count, or an .npz archive whose arrays are all tensors of layers. Errors wrap ErrWeights.
func ReadWeights(b []byte) (*Weights, error) {
	if bytes.HasPrefix(b, []byte("PK")) {
		tensors, err := readArrays(b)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrWeights, err)
		}
		return newWeights(tensors)
	}
	f, err := modelfile.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%w: the file is neither a model file nor an .npz archive: %w", ErrWeights, err)
	}
	var tensors []algorithms.Tensor
	for _, t := range f.Tensors {
		if t.F32 != nil && tensorNames.MatchString(t.Name) {
			tensors = append(tensors, t)
		}
	}
	if len(tensors) == 0 {
		return nil, fmt.Errorf("%w: the model of %s has no layers such as hidden1 or output", ErrWeights, f.Algorithm)
	}
	return newWeights(tensors)
}

// newWeights checks and encodes tensors.
func newWeights(tensors []algorithms.Tensor) (*Weights, error) {
	slices.SortFunc(tensors, func(a, b algorithms.Tensor) int { return cmp.Compare(a.Name, b.Name) })
	w := &Weights{tensors: tensors}
	if err := w.check(); err != nil {
		return nil, err
	}
	w.File, _ = modelfile.Encode(weightsName, tensors, nil)
	sum := sha256.Sum256(w.File)
	w.Digest = hex.EncodeToString(sum[:])
	return w, nil
}

// DecodeWeights reads Weights.File. Errors wrap ErrWeights.
func DecodeWeights(file []byte) (*Weights, error) {
	f, err := modelfile.Decode(file)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrWeights, err)
	}
	w := &Weights{File: file, tensors: f.Tensors}
	if f.Algorithm != weightsName || len(f.Provenance) > 0 {
		return nil, fmt.Errorf("%w: the file is a model of %.80q, not a file of weights", ErrWeights, f.Algorithm)
	}
	if err := w.check(); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(file)
	w.Digest = hex.EncodeToString(sum[:])
	return w, nil
}

// check returns an error about the first tensor that is none of a layer.
func (w *Weights) check() error {
	if len(w.tensors) == 0 {
		return fmt.Errorf("%w: the file has no tensors", ErrWeights)
	}
	for i, t := range w.tensors {
		switch {
		case !tensorNames.MatchString(t.Name):
			return fmt.Errorf("%w: %.80q is not a tensor of a layer; valid names are %s", ErrWeights, t.Name, namesText)
		case i > 0 && w.tensors[i-1].Name >= t.Name:
			return fmt.Errorf("%w: tensor %s occurs twice or is not sorted by name", ErrWeights, t.Name)
		case t.F32 == nil:
			return fmt.Errorf("%w: tensor %s has another data type than float32", ErrWeights, t.Name)
		case !num.Finite32(t.F32):
			return fmt.Errorf("%w: tensor %s has a value that is not finite", ErrWeights, t.Name)
		}
	}
	return nil
}

// find returns a tensor, or nil.
func (w *Weights) find(name string) *algorithms.Tensor {
	i := slices.IndexFunc(w.tensors, func(t algorithms.Tensor) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &w.tensors[i]
}

// layers returns the names of the layers.
func (w *Weights) layers() (names []string) {
	for _, t := range w.tensors {
		if name := layerOf(t.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// times writes a shape: 3x3x16.
func times(dims []int) string {
	words := make([]string, len(dims))
	for i, n := range dims {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, "x")
}

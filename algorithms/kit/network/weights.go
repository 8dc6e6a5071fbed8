package network

import (
	"archive/zip"
	"bufio"
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
	"github.com/coppice-ldl/coppice/algorithms/kit/gradient"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset/npy"
	"github.com/coppice-ldl/coppice/internal/num"
)

// SettingInitFrom is the setting that names weights. A client that submits a job puts their digest
// (Weights.Digest) in the place of a file or of a model.
const SettingInitFrom = "init_from"

// Initial says where the first parameters of a network come from if not from a seed. It is a field of
// a Config.
type Initial struct {
	From   string // the digest of a file of Weights, or none
	Layers string // the layers that are taken, or all
}

// all is the word of init_layers for every layer that the weights have.
const all = "all"

// maxFrom bounds the text of init_from: the path of a file, before it is a digest.
const maxFrom = 4096

// InitSettings lists the settings of a field of C. The function of returns the field.
func InitSettings[C any](of func(*C) *Initial) param.Table[C] {
	return param.Table[C]{
		param.Text(SettingInitFrom, "initial weights: a model file, an .npz file with one array for each tensor of a "+
			"layer, or a model on the cluster",
			"a file, the name or the digest of a model on the cluster, or none", none, checkFrom, func(c *C) *string {
				return &of(c).From
			}),
		param.Text("init_layers", "layers that start from the weights of init_from, such as convolution1,hidden1; the "+
			"others start at random. all: every layer that init_from has",
			"names of layers, such as hidden1 or convolution1,output, or all",
			all, checkInitLayers, func(c *C) *string { return &of(c).Layers }),
	}
}

func checkFrom(text string) error {
	if text == "" || len(text) > maxFrom {
		return fmt.Errorf("want 1 to %d characters", maxFrom)
	}
	return nil
}

func checkInitLayers(text string) error {
	if text == none {
		return errors.New("no layer would start from the weights: omit init_from")
	}
	return checkFreeze(text)
}

// Digest returns the digest of the weights; "": all layers are drawn.
func (c *Initial) Digest() string {
	if c.From == none {
		return ""
	}
	return c.From
}

// Check returns a *param.Error where the settings contradict each other.
func (c *Initial) Check() error {
	switch {
	case c.From == none && c.Layers != all:
		return param.Errorf("init_layers", "needs init_from, which names the weights")
	case c.From != none && !isDigest(c.From):
		return param.Errorf(SettingInitFrom, "%.80q is not the digest of uploaded weights; only coppice train reads files "+
			"and models, and only for a single job", c.From)
	}
	return nil
}

// isDigest reports whether text is a SHA-256 in lower-case hex.
func isDigest(text string) bool {
	return len(text) == 64 && strings.Trim(text, "0123456789abcdef") == ""
}

// Fits returns an error if the bytes of the weights are not of a network of these layers: a
// *param.Error, or an error that wraps ErrWeights.
func (c *Initial) Fits(layers []Layer, file []byte) error {
	_, err := c.take(layers, file)
	return err
}

// Give sets the first parameters of a function, which is a Network, from the bytes of weights. Without init_from
// it does nothing. It returns the same errors as Fits.
func (c *Initial) Give(f gradient.Function, file []byte) (err error) {
	if c.From != none {
		n := f.(*Network)
		n.Given, err = c.take(n.Layers, file)
	}
	return err
}

// Memory estimates the bytes that the weights and their decoded values take in addition to a trainer.
func (c *Initial) Memory(f *Network) int64 {
	if c.From == none {
		return 0
	}
	return 2 * 4 * int64(gradient.Parameters(f))
}

// take returns the tensors that begin with given values, by name.
func (c *Initial) take(layers []Layer, file []byte) (map[string][]float32, error) {
	w, err := DecodeWeights(file)
	if err != nil {
		return nil, err
	}
	own := layoutOf(layers)
	if err := c.checkNames(own, w); err != nil {
		return nil, err
	}
	taken := make(map[string][]float32)
	for _, t := range own {
		given := w.find(t.Name)
		if given == nil || !c.takes(layerOf(t.Name)) {
			continue
		}
		if !slices.Equal(given.Dims, t.Dims) {
			return nil, param.Errorf(SettingInitFrom, "%s has the shape %s in the weights but %s in this network; list the "+
				"layers to use in init_layers", t.Name, times(given.Dims), times(t.Dims))
		}
		taken[t.Name] = given.F32
	}
	if len(taken) == 0 {
		return nil, param.Errorf(SettingInitFrom, "the weights have no layer of this network: the weights have %s, the "+
			"network has %s", strings.Join(w.layers(), ", "), strings.Join(layersOf(own), ", "))
	}
	return taken, nil
}

// takes reports whether init_layers has a layer.
func (c *Initial) takes(layer string) bool {
	return c.Layers == all || slices.Contains(strings.Split(c.Layers, ","), layer)
}

// checkNames returns an error about a layer of init_layers that the network or the weights lack.
func (c *Initial) checkNames(own []gradient.Layer, w *Weights) error {
	if c.Layers == all {
		return nil
	}
	for name := range strings.SplitSeq(c.Layers, ",") {
		if known := layersOf(own); !slices.Contains(known, name) {
			return param.Errorf("init_layers", "layer %q does not exist; the layers are %s", name, strings.Join(known, ", "))
		}
		if known := w.layers(); !slices.Contains(known, name) {
			return param.Errorf("init_layers", "the weights have no layer %q; their layers are %s", name,
				strings.Join(known, ", "))
		}
	}
	return nil
}

// layersOf returns the names of the layers that have tensors, in their order.
func layersOf(tensors []gradient.Layer) (names []string) {
	for _, t := range tensors {
		if name := layerOf(t.Name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

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

// tensorNames matches the names of the tensors of Config.Layers and of Hidden.
var tensorNames = regexp.MustCompile(
	`^((convolution|hidden)[1-9][0-9]{0,3}|output)(\.norm)?(\.bias)?$|^hidden\.(relu|logistic|bias)$`)

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

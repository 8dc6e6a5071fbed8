package ldlf

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/gradient"
	"github.com/coppice-ldl/coppice/algorithms/scaling"
	"github.com/coppice-ldl/coppice/internal/num"
)

// ErrModel is wrapped by every error about a model's tensors.
var ErrModel = errors.New("ldlf: not a model of this algorithm")

// settingsLength is the length of the settings tensor: format, trees, depth,
// outputs, features, labels, bias (0 or 1), scaling (index in scaling.Kinds).
const settingsLength = 8

func (m *model) settings() []uint32 {
	bias := uint32(0)
	if m.bias {
		bias = 1
	}
	return []uint32{
		modelFormat, uint32(m.trees), uint32(m.depth), uint32(m.outputs), uint32(m.features), uint32(m.labels),
		bias, uint32(slices.Index(scaling.Kinds, m.kind)),
	}
}

// decodeModel rebuilds a model; the tensors' slices are kept.
func decodeModel(tensors []algorithms.Tensor) (*model, error) {
	m, err := decodeSettings(tensors)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	want := m.Tensors()
	if len(tensors) != len(want) {
		return nil, fmt.Errorf("%w: %d tensors where %d belong", ErrModel, len(tensors), len(want))
	}
	for i := range want {
		if err := sameShape(&tensors[i], &want[i]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrModel, err)
		}
	}
	if err := m.fill(tensors); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}

// decodeSettings reads the first tensor into a model whose other tensors are
// still zero.
func decodeSettings(tensors []algorithms.Tensor) (*model, error) {
	if len(tensors) == 0 || tensors[0].Name != "settings" || len(tensors[0].U32) != settingsLength {
		return nil, errors.New("the first tensor is not settings")
	}
	v := tensors[0].U32
	if v[0] != modelFormat {
		return nil, fmt.Errorf("format %d, this program reads %d", v[0], modelFormat)
	}
	if v[1] < 1 || v[1] > 1000 || v[2] < 2 || v[2] > 20 || v[3] < 1 || v[3] > 1<<20 || v[4] < 1 || v[5] < 1 || v[6] > 1 || int(v[7]) >= len(scaling.Kinds) {
		return nil, fmt.Errorf("settings %v are out of range", v)
	}
	c := &Config{Trees: int(v[1]), Depth: int(v[2]), Outputs: int(v[3]), Bias: v[6] == 1}
	z := newSizes(c, int(v[4]), int(v[5]))
	if z.outputs < z.splits || z.features > maxValues || z.labels > maxValues || z.theta() > maxValues || z.q() > maxValues {
		return nil, fmt.Errorf("settings %v are out of range", v)
	}
	f := gradient.Decode(gradient.Options{Features: z.features, Outputs: z.outputs, Bias: z.bias}, functionTensors(tensors))
	if z.parameters = gradient.Parameters(f); z.theta() > maxValues {
		return nil, fmt.Errorf("a feature function of %d parameters", z.theta())
	}
	return newModel(z, f, scaling.Kinds[v[7]], scaling.Values{}, nil, nil, nil), nil
}

// functionTensors returns what stands between φ and q, the feature function's tensors.
func functionTensors(tensors []algorithms.Tensor) []algorithms.Tensor {
	i := slices.IndexFunc(tensors, func(t algorithms.Tensor) bool { return t.Name == "phi" })
	return tensors[min(i+1, len(tensors)-1) : len(tensors)-1]
}

// sameShape reports how a tensor differs from the one that belongs there.
func sameShape(have, want *algorithms.Tensor) error {
	if have.Name != want.Name || !slices.Equal(have.Dims, want.Dims) {
		return fmt.Errorf("tensor %q %v where %q %v belongs", have.Name, have.Dims, want.Name, want.Dims)
	}
	n := 1
	for _, d := range want.Dims {
		n *= d
	}
	var f32, f64, u32 int
	switch want.Name {
	case "settings", "phi":
		u32 = n
	case "scaling.shift", "scaling.scale":
		f64 = n
	default:
		f32 = n
	}
	if len(have.F32) != f32 || len(have.F64) != f64 || len(have.U32) != u32 {
		return fmt.Errorf("tensor %q does not hold its %d values", have.Name, n)
	}
	return nil
}

// fill takes the tensors' values, which have the right shapes.
func (m *model) fill(tensors []algorithms.Tensor) error {
	if m.kind != scaling.None {
		m.weights.Input = scaling.Values{Shift: tensors[1].F64, Scale: tensors[2].F64}
	}
	own := functionTensors(tensors)
	m.phi, m.weights.Theta, m.q = tensors[len(tensors)-2-len(own)].U32, gradient.Theta(own), tensors[len(tensors)-1].F32
	switch {
	case !num.Finite64(m.weights.Input.Shift) || !num.Finite64(m.weights.Input.Scale) || !num.Finite32(m.weights.Theta):
		return errors.New("a value is not finite")
	case slices.ContainsFunc(m.q, func(v float32) bool { return !(v >= 0 && v <= math.MaxFloat32) }):
		return errors.New("a leaf's probability is negative or not finite")
	}
	return m.checkPhi()
}

// checkPhi reports a split node whose output unit does not exist, or comes twice
// in its tree.
func (m *model) checkPhi() error {
	seen := make([]int, m.outputs)
	for i, unit := range m.phi {
		tree := i/m.splits + 1
		if int(unit) >= m.outputs || seen[unit] == tree {
			return fmt.Errorf("split node %d of tree %d reads output unit %d", i%m.splits, tree-1, unit)
		}
		seen[unit] = tree
	}
	return nil
}

package ensemble

import (
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/algorithms/kit/learner"
	"github.com/coppice-ldl/coppice/dataset"
)

// modelFormat is the version of the tensors: settings, weights, then those of each member, whose
// names begin with its number and its algorithm: 0/structrf/settings.
const modelFormat = 1

// headTensors are those before the members'.
const headTensors = 2

// model implements algorithms.Model. With the weights validated it has the best member alone.
type model struct {
	weights []float64
	names   []string // of the members' algorithms
	members []algorithms.Model
}

// head lists the tensors before the members'.
func (m *model) head(l *learner.Tensors) {
	count := len(m.weights)
	l.Settings(modelFormat, learner.Within(&count, 1, mostMembers))
	l.F64("weights", &m.weights, count)
	if l.Reading() {
		l.Check(onSimplex(m.weights), "the weights of the members are %v, want numbers of at least 0 that sum to 1",
			m.weights)
	}
}

func prefix(member int, algorithm string) string { return fmt.Sprintf("%d/%s/", member, algorithm) }

// Tensors implements algorithms.Model.
func (m *model) Tensors() []algorithms.Tensor {
	all := learner.ListTensors(m.head)
	for i, own := range m.members {
		for _, t := range own.Tensors() {
			t.Name = prefix(i, m.names[i]) + t.Name
			all = append(all, t)
		}
	}
	return all
}

// decodeModel makes a model of its tensors.
func (k kin) decodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, rest := new(model), tensors[min(headTensors, len(tensors)):]
	if err := learner.ReadTensors(tensors[:len(tensors)-len(rest)], m.head); err != nil {
		return nil, err
	}
	for i := range m.weights {
		own, name, err := take(&rest, i)
		if err != nil {
			return nil, err
		}
		a, err := k.find(name)
		if err != nil {
			return nil, err
		}
		trained, err := a.DecodeModel(own)
		if err != nil {
			return nil, fmt.Errorf("member %d: %w", i, err)
		}
		m.names, m.members = append(m.names, name), append(m.members, trained)
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("the tensor %q is not a tensor of any member", rest[0].Name)
	}
	return m, m.check()
}

// take takes the tensors of a member off the list, without the beginnings of their names, and
// returns the name of its algorithm.
func take(rest *[]algorithms.Tensor, member int) (own []algorithms.Tensor, algorithm string, err error) {
	if len(*rest) == 0 {
		return nil, "", fmt.Errorf("the tensors of member %d are missing", member)
	}
	parts := strings.SplitN((*rest)[0].Name, "/", 3)
	if len(parts) < 3 {
		return nil, "", fmt.Errorf("the tensor %q is not a tensor of any member", (*rest)[0].Name)
	}
	begins := prefix(member, parts[1])
	for _, t := range *rest {
		name, ok := strings.CutPrefix(t.Name, begins)
		if !ok {
			break
		}
		t.Name = name
		own = append(own, t)
	}
	*rest = (*rest)[len(own):]
	return own, parts[1], nil
}

var errShapes = errors.New("all members must have the same features and labels, and predict the same kind of output")

// check returns an error if the members do not go together.
func (m *model) check() error {
	features, labels := m.Shape()
	for _, own := range m.members {
		if f, l := own.Shape(); f != features || l != labels {
			return errShapes
		}
	}
	return nil
}

// Shape implements algorithms.Model.
func (m *model) Shape() (features, labels int) { return m.members[0].Shape() }

// Describe implements algorithms.Model: the weights, then what the members say.
func (m *model) Describe() (all [][2]string) {
	labels := labelled(m.names)
	for i, w := range m.weights {
		all = append(all, [2]string{"weight of " + labels[i], fmt.Sprintf("%.4f", w)})
	}
	for i, own := range m.members {
		for _, line := range own.Describe() {
			all = append(all, [2]string{labels[i] + ": " + line[0], line[1]})
		}
	}
	return all
}

// blockRows is how many rows are predicted at a time.
const blockRows = 256

// predictor is the working memory of one caller of Predict.
type predictor struct {
	members []any
	one     []float32 // rows×labels, of a member
	sums    []float64 // rows×labels
}

// NewScratch implements algorithms.Model.
func (m *model) NewScratch() any {
	_, labels := m.Shape()
	p := &predictor{one: make([]float32, blockRows*labels), sums: make([]float64, blockRows*labels)}
	for _, own := range m.members {
		p.members = append(p.members, own.NewScratch())
	}
	return p
}

// Predict implements algorithms.Model: the weighted sum in float64, in the order of members.
func (m *model) Predict(dst []float32, refs []dataset.RowRef, shard func(uint32) *dataset.Rows, scratch any) {
	p := scratch.(*predictor)
	_, labels := m.Shape()
	for len(refs) > 0 {
		n := min(blockRows, len(refs))
		sums, one := p.sums[:n*labels], p.one[:n*labels]
		clear(sums)
		for i, own := range m.members {
			if m.weights[i] == 0 { // adds nothing
				continue
			}
			own.Predict(one, refs[:n], shard, p.members[i])
			for at, degree := range one {
				sums[at] += float64(m.weights[i] * float64(degree))
			}
		}
		for at, sum := range sums {
			dst[at] = float32(sum)
		}
		dst, refs = dst[n*labels:], refs[n:]
	}
}

// Graph implements graph.Model: the graphs of the members, and their weighted sum.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	sum := graph.Value("")
	for i, own := range m.members {
		if m.weights[i] == 0 {
			continue
		}
		p, err := graph.Of(own, b, x)
		if err != nil {
			return "", fmt.Errorf("member %s: %w", labelled(m.names)[i], err)
		}
		p = b.Op("Mul", b.Number(m.weights[i]), b.Cast(p, graph.Float64))
		if sum != "" {
			p = b.Op("Add", sum, p)
		}
		sum = p
	}
	return b.Cast(sum, graph.Float32), nil
}

package ptbayes

import (
	"fmt"

	"github.com/coppice-ldl/coppice/dataset"
)

// maxMoments bounds features×labels.
const maxMoments = 1 << 25

// fits refuses a model that is too large.
func fits(m *dataset.Manifest) error {
	if n := int64(m.Features) * int64(m.Labels); n > maxMoments {
		return fmt.Errorf("the model would hold %d means (%d features × %d labels), at most %d are possible", n,
			m.Features, m.Labels, maxMoments)
	}
	return nil
}

// moments are views of one vector. A round sums the first part; then mean and ofLabel become means, around which a
// second round sums squares.
type moments struct {
	features, labels int
	rows             []float64 // one value
	weight           []float64 // labels
	mean             []float64 // features
	ofLabel          []float64 // features×labels: means of each label
	variance         []float64 // features
	variances        []float64 // features×labels: of each label
}

func momentsOf(features, labels int) *moments { return &moments{features: features, labels: labels} }

// first is the number of values of the first part.
func (m *moments) first() int { return 1 + m.labels + m.features*(1+m.labels) }

// second is the number of values of the second part.
func (m *moments) second() int { return m.features * (1 + m.labels) }

func (m *moments) size() int { return m.first() + m.second() }

// view sets the views of the first part, and, if v has it, of the second part.
func (m *moments) view(v []float64) {
	take := func(n int) []float64 {
		head := v[:n:n]
		v = v[n:]
		return head
	}
	m.rows, m.weight, m.mean, m.ofLabel = take(1), take(m.labels), take(m.features), take(m.features*m.labels)
	if len(v) > 0 {
		m.viewSecond(v)
	}
}

// viewSecond sets the views of the second part.
func (m *moments) viewSecond(v []float64) { m.variance, m.variances = v[:m.features], v[m.features:] }

// divide makes means of the sums.
func (m *moments) divide() {
	for k := range m.mean {
		m.mean[k] /= m.rows[0]
	}
	m.overWeights(m.ofLabel)
}

// divideSecond makes variances of the sums.
func (m *moments) divideSecond() {
	for k := range m.variance {
		m.variance[k] /= m.rows[0]
	}
	m.overWeights(m.variances)
}

func (m *moments) overWeights(v []float64) {
	for i := range v {
		if w := m.weight[i%m.labels]; w > 0 {
			v[i] /= w
		}
	}
}

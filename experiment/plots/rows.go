package plots

import (
	"cmp"
	"slices"

	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/experiment/figure"
)

// Rows are rows with their true and predicted distributions.
type Rows struct {
	Labels          int
	Names           []string  // names of the rows
	True, Predicted []float32 // rows x Labels, row-major
}

// Add appends a row. It copies the slices.
func (r *Rows) Add(name string, truth, predicted []float32) {
	r.Labels = len(truth)
	r.Names = append(r.Names, name)
	r.True, r.Predicted = append(r.True, truth...), append(r.Predicted, predicted...)
}

// kl returns the K-L of row i.
func (r *Rows) kl(i int) float64 {
	from, to := i*r.Labels, (i+1)*r.Labels
	return measures.OfRow(r.True[from:to], r.Predicted[from:to])[klIndex]
}

// klIndex is the index of K-L among the measures of a row.
var klIndex = slices.IndexFunc(measures.All, func(m measures.Measure) bool { return m.Name == "kl" })

// chosen returns rows for the panels, sorted by K-L, at equal distances in this order.
func (r *Rows) chosen() []int {
	order, kl := make([]int, len(r.Names)), make([]float64, len(r.Names))
	for i := range order {
		order[i], kl[i] = i, r.kl(i)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(kl[a], kl[b]) })
	var some []int
	for _, place := range figure.Panels(len(order)) {
		some = append(some, order[place])
	}
	return some
}

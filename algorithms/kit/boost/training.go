package boost

import (
	"github.com/coppice-ldl/coppice/algorithms/kit/forest"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/internal/num"
)

// training is what a kernel keeps of the training rows.
type training struct {
	roles    dataset.Roles // of the rows: a refit has the validation rows too
	table    *forest.Table
	binned   *binned
	segments []segment // the other columns, sorted
	entries  []uint32  // of these, one column after the other
	labels   []float32 // rows×labels
	heavy    []float64 // the weights by row; nil: none
	entropy  []float64 // Σ d ln d, by row
	sums     *RowSums
	current  *Gradients
	spare    *Gradients
}

func newTraining(d *dataset.Data, refs []dataset.RowRef, leafRows int) (*training, error) {
	table, err := forest.NewTable(d, refs)
	if err != nil {
		return nil, err
	}
	t := &training{table: table, sums: NewRowSums(table.Refs(), d.Manifest.Labels)}
	for i, ref := range table.Refs() {
		if d.Manifest.HasWeights {
			t.heavy = append(t.heavy, d.Shard(int(ref.Shard)).WeightOf(int(ref.Pos)))
		}
		label := table.Label(uint32(i))
		t.labels = append(t.labels, label...)
		entropy := 0.0
		for _, degree := range label {
			if x := float64(degree); x > 0 {
				entropy += float64(x * num.Log(x))
			}
		}
		t.entropy = append(t.entropy, entropy)
	}
	var sorted []uint32
	t.binned, sorted = newBinned(table, d.Manifest.Features, leafRows)
	for _, c := range sorted {
		from := len(t.entries)
		t.entries = append(t.entries, table.Column(int(c))...)
		t.segments = append(t.segments, segment{c, uint32(from), uint32(len(t.entries))})
	}
	return t, nil
}

// predict computes P and the loss.
func (g *Gradients) predict(t *training, s *Scores) {
	loss := 0.0
	copy(g.P, t.sums.Sums)
	for i := range g.Rows {
		f := g.P[i*g.Labels : (i+1)*g.Labels]
		s.Apply(f)
		row, whole := t.entropy[i], 0.0
		for c, degree := range g.D[i*g.Labels : (i+1)*g.Labels] {
			row -= float64(float64(degree) * f[c])
			whole += float64(degree)
		}
		row += float64(whole * Softmax(f))
		if g.weights != nil {
			row *= g.weights[i]
		}
		loss += row
	}
	g.loss = max(0, loss/g.mass)
}

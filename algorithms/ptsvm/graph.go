package ptsvm

import "github.com/coppice-ldl/coppice/algorithms/kit/graph"

// Graph implements graph.Model. The system of couple is solved by the elimination of Gauss and Jordan, one label after
// the other.
func (m *model) Graph(b *graph.Builder, x graph.Value) (graph.Value, error) {
	n, count := m.labels, pairs(m.labels)
	z := b.Op("Add", b.Op("Mul", b.F64(m.sigmoids[:count], count), graph.Linear(b, x, m.weights, m.features, count)),
		b.F64(m.sigmoids[count:], count))
	z = b.Op("Min", b.Op("Max", z, b.Number(-700)), b.Number(700))
	one := b.Number(1)
	r := b.Op("Div", one, b.Op("Add", one, b.Op("Exp", z)))
	r = b.Op("Min", b.Op("Max", r, b.Number(leastShare)), b.Number(1-leastShare))
	// wins has in row a and column c the probability of a against c, and 0 on the diagonal.
	at, diagonal, others, i := make([]int, n*n), make([]float64, n*n), make([]float64, n*n), 0
	for a := range n {
		for c := a + 1; c < n; c++ {
			at[a*n+c], at[c*n+a] = i, count+i
			others[a*n+c], others[c*n+a] = 1, 1
			i++
		}
		diagonal[a*n+a] = 1
	}
	both := b.Concat(1, r, b.Op("Sub", one, r))
	wins := b.Op("Mul", b.Reshape(b.Gather(both, 1, at...), 0, n, n), b.F64(others, n, n))
	squares := b.Op("Mul", b.Sum(b.Op("Mul", wins, wins), 1), b.Number(1+ridge))
	system := b.Op("Sub", b.Op("Mul", squares, b.F64(diagonal, n, n)), b.Op("Mul", wins, b.Transpose(wins, 0, 2, 1)))
	system = b.Concat(2, system, graph.Repeat(b, one, x, n, 1))
	chosen := make([]float64, n*(n+1)) // of each label a column that chooses it
	for a := range n {
		chosen[a*(n+1)+a] = 1
	}
	system = b.Scan(system, func(b *graph.Builder, system graph.Value, of []graph.Value) graph.Value {
		row := b.Op("MatMul", of[0], system)
		unit := b.Op("Div", row, b.Op("MatMul", row, of[1]))
		column := b.Op("Sub", b.Op("MatMul", system, of[1]), b.Transpose(of[0], 1, 0))
		return b.Op("Sub", system, b.Op("Mul", column, unit))
	}, b.F64(diagonal, n, 1, n), b.F64(chosen, n, n+1, 1))
	p := b.Op("Max", b.Reshape(b.Gather(system, 2, n), 0, n), b.Number(0))
	return b.Cast(b.Op("Div", p, b.Sum(p, 1)), graph.Float32), nil
}

package graph

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestProducts computes the nodes that Products adds, by plain loops, and compares the results with products along the
// paths.
func TestProducts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factors := rapid.SliceOfN(rapid.Float64Range(0, 2), 6, 6).Draw(t, "factors")
		path := rapid.SliceOfN(rapid.IntRange(0, len(factors)-1), 1, 5)
		paths := rapid.SliceOfN(path, 1, 20).Draw(t, "paths")
		b := New()
		result, order := Products(b, "factors", paths)
		values := map[Value][]float64{"factors": factors} // one sample
		lists := make(map[Value][]int64)
		for _, c := range b.Graph.Constants {
			lists[c.Name] = c.I64
		}
		products := 0
		for _, n := range b.Graph.Nodes {
			var v []float64
			switch n.Op {
			case "Gather":
				for _, at := range lists[n.Inputs[1]] {
					v = append(v, values[n.Inputs[0]][at])
				}
			case "Mul":
				for i, x := range values[n.Inputs[0]] {
					v = append(v, x*values[n.Inputs[1]][i])
				}
				products += len(v)
			case "Concat":
				for _, part := range n.Inputs {
					v = append(v, values[part]...)
				}
			}
			values[n.Outputs[0]] = v
		}
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != len(paths) || sorted[0] != 0 ||
			len(slices.Compact(sorted)) != len(paths) {
			t.Fatalf("the order is %v", order)
		}
		most := 0
		for i, at := range order {
			want := 1.0
			for _, f := range paths[at] {
				want *= factors[f]
			}
			if most += len(paths[at]) - 1; values[result][i] != want {
				t.Fatalf("the product of path %v is %v, want %v", paths[at], values[result][i], want)
			}
		}
		if products > most {
			t.Fatalf("%d products for paths that need %d without common beginnings", products, most)
		}
	})
}

// TestLists: equal lists are one constant, and lists that look alike in part are not.
func TestLists(t *testing.T) {
	b := New()
	if first := b.List(1, 2); b.List(1, 2) != first || b.List(12) == first || b.List(1) == b.List() {
		t.Error("lists have wrong constants")
	}
}

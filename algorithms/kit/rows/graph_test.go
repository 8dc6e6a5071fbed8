package rows

import (
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/graph"
	"github.com/coppice-ldl/coppice/dataset"
)

// TestTooManyKept: sparse rows that would need gigabytes as dense rows have no graph.
func TestTooManyKept(t *testing.T) {
	r := &dataset.Rows{N: 1 << 20, Features: 1 << 10, Sparse: true}
	if _, err := SquaresGraph(graph.New(), "x", r, nil); !errors.Is(err, graph.ErrNone) {
		t.Errorf("got %v", err)
	}
}

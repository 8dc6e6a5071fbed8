package linalg

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/num/nofuse"
)

// TestNothingFuses allows the functions that ask for fused multiply-adds.
func TestNothingFuses(t *testing.T) {
	nofuse.Check(t, ".", "linalg.addTileGo", "linalg.addTile", "linalg.(*buffers).addTiles", "linalg.(*buffers).addEdge", "linalg.choleskyBase", "linalg.solveBase", "linalg.reflectPanel", "linalg.norm", "linalg.dot", "linalg.addScaled")
}

package registry_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/algorithmtest"
	"github.com/coppice-ldl/coppice/algorithms/algorithmtest/kintest"
	"github.com/coppice-ldl/coppice/algorithms/registry"
)

func init() { kintest.Use() }

// TestContract: every algorithm passes the suite of algorithms/algorithmtest.
func TestContract(t *testing.T) {
	for _, a := range registry.All() {
		t.Run(a.Name(), func(t *testing.T) { algorithmtest.Run(t, a) })
	}
}

package registry_test

import (
	"regexp"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/dldl"
	"github.com/coppice-ldl/coppice/algorithms/gldbfgs"
	"github.com/coppice-ldl/coppice/algorithms/kit/network"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/harness/contract/kintest"
)

func init() { kintest.Use() }

// cases are jobs that the suite does not derive from the settings.
var cases = map[string][]contract.Case{
	ldlf.Name: {convolutions("leaf_batches")},
	dldl.Name: {convolutions("validation_steps")},
	gldbfgs.Name: {{Name: "paper", Set: param.Values{"preset": "paper", "iterations": int64(6),
		"stage_iterations": int64(3)}}},
}

// convolutions is a job on a network that begins with convolutions; interval is the setting that
// tells how many steps there are from one validation to the next.
func convolutions(interval string) contract.Case {
	return contract.Case{Name: "convolutions", Set: param.Values{
		"features": network.Conv, "shape": "row", "channels": "3,2", "pool": int64(1), "hidden": "4", interval: int64(3),
		"steps": int64(12), "layer_norm": true, "flip": true,
	}}
}

// TestContract: every algorithm passes the suite of harness/contract.
func TestContract(t *testing.T) {
	for _, a := range registry.All() {
		t.Run(a.Name(), func(t *testing.T) { contract.Run(t, a, cases[a.Name()]...) })
	}
}

// TestClasses: each algorithm has a Python class with a name of its own. The Python library uses Estimator for another
// class.
func TestClasses(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	owner := map[string]string{"Estimator": "the base class", "None": "Python", "True": "Python", "False": "Python"}
	for _, a := range registry.All() {
		class := a.About().Class
		if !valid.MatchString(class) {
			t.Errorf("%s: the class %q is not a name such as StructRF", a.Name(), class)
		}
		if other, twice := owner[class]; twice {
			t.Errorf("%s: the class %s belongs to %s", a.Name(), class, other)
		}
		owner[class] = a.Name()
	}
}

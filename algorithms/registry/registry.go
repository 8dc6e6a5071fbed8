// Package registry lists the algorithms: adding one is adding a folder under
// algorithms and a line here.
package registry

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/aabp"
	"github.com/coppice-ldl/coppice/algorithms/aaknn"
	"github.com/coppice-ldl/coppice/algorithms/aosoldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/cpnn"
	"github.com/coppice-ldl/coppice/algorithms/dfldl"
	"github.com/coppice-ldl/coppice/algorithms/dldl"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/algorithms/ldlldm"
	"github.com/coppice-ldl/coppice/algorithms/ldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/ldsvr"
	"github.com/coppice-ldl/coppice/algorithms/mlpregression"
	"github.com/coppice-ldl/coppice/algorithms/ndf"
	"github.com/coppice-ldl/coppice/algorithms/quadratic"
	"github.com/coppice-ldl/coppice/algorithms/ranking"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/algorithms/saiis"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
)

// All lists every algorithm, in the order of help texts.
func All() []algorithms.Algorithm { return slices.Clone(all()) }

var all = sync.OnceValue(func() []algorithms.Algorithm {
	single := []algorithms.Algorithm{
		ldlf.New(),
		structrf.New(),
		rf.New(),
		dldl.New(),
		aabp.New(),
		mlpregression.New(),
		cpnn.New(),
		sabfgs.New(),
		saiis.New(),
		ldlldm.New(),
		dfldl.New(),
		quadratic.New(),
		ranking.New(),
		ldlogitboost.New(),
		aosoldlogitboost.New(),
		aaknn.New(),
		ldsvr.New(),
		ndf.New(),
	}
	return append(single, ensemble.New(single))
})

// extra are the algorithms that Register added.
var extra []algorithms.Algorithm

// Register adds an algorithm for tests, which no user can run. Call it before any other
// function of this package.
func Register(a algorithms.Algorithm) { extra = append(extra, a) }

// Names lists the names of all algorithms.
func Names() []string {
	var names []string
	for _, a := range All() {
		names = append(names, a.Name())
	}
	return names
}

// Find returns the algorithm of a name.
func Find(name string) (algorithms.Algorithm, error) {
	for _, a := range append(All(), extra...) {
		if a.Name() == name {
			return a, nil
		}
	}
	return nil, fmt.Errorf("algorithm %q is unknown; the algorithms are: %s", name, strings.Join(Names(), ", "))
}

// Output returns what the models of an algorithm predict.
func Output(name string) algorithms.Output {
	a, err := Find(name)
	if err != nil {
		return algorithms.Distribution
	}
	return a.Predicts()
}

// Model decodes a model file into its file and model.
func Model(b []byte) (*modelfile.File, algorithms.Model, error) {
	f, err := modelfile.Decode(b)
	if err != nil {
		return nil, nil, err
	}
	a, err := Find(f.Algorithm)
	if err != nil {
		return nil, nil, err
	}
	m, err := a.DecodeModel(f.Tensors)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", modelfile.ErrCorrupt, err)
	}
	return f, m, nil
}

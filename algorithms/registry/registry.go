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
	"github.com/coppice-ldl/coppice/algorithms/edllrl"
	"github.com/coppice-ldl/coppice/algorithms/ensemble"
	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/algorithms/gldbfgs"
	"github.com/coppice-ldl/coppice/algorithms/gldknn"
	"github.com/coppice-ldl/coppice/algorithms/incomldl"
	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/algorithms/ldl4c"
	"github.com/coppice-ldl/coppice/algorithms/ldlboost"
	"github.com/coppice-ldl/coppice/algorithms/ldlf"
	"github.com/coppice-ldl/coppice/algorithms/ldlhr"
	"github.com/coppice-ldl/coppice/algorithms/ldllc"
	"github.com/coppice-ldl/coppice/algorithms/ldlldm"
	"github.com/coppice-ldl/coppice/algorithms/ldllrr"
	"github.com/coppice-ldl/coppice/algorithms/ldlm"
	"github.com/coppice-ldl/coppice/algorithms/ldlogitboost"
	"github.com/coppice-ldl/coppice/algorithms/ldlscl"
	"github.com/coppice-ldl/coppice/algorithms/ldlsf"
	"github.com/coppice-ldl/coppice/algorithms/ldsvr"
	"github.com/coppice-ldl/coppice/algorithms/mlpregression"
	"github.com/coppice-ldl/coppice/algorithms/ndf"
	"github.com/coppice-ldl/coppice/algorithms/ptbayes"
	"github.com/coppice-ldl/coppice/algorithms/ptsvm"
	"github.com/coppice-ldl/coppice/algorithms/quadratic"
	"github.com/coppice-ldl/coppice/algorithms/ranking"
	"github.com/coppice-ldl/coppice/algorithms/rf"
	"github.com/coppice-ldl/coppice/algorithms/sabfgs"
	"github.com/coppice-ldl/coppice/algorithms/saiis"
	"github.com/coppice-ldl/coppice/algorithms/structrf"
	"github.com/coppice-ldl/coppice/algorithms/winldl"
	"github.com/coppice-ldl/coppice/internal/errtext"
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
		ldllrr.New(),
		ldllc.New(),
		ldl4c.New(),
		ldlhr.New(),
		ldlm.New(),
		edllrl.New(),
		ldlscl.New(),
		ptbayes.New(),
		ptsvm.New(),
		ldlsf.New(),
		incomldl.New(),
		winldl.New(),
		dfldl.New(),
		quadratic.New(),
		ranking.New(),
		ldlogitboost.New(),
		aosoldlogitboost.New(),
		ldlboost.New(),
		aaknn.New(),
		gldknn.New(),
		gldbfgs.New(),
		ldsvr.New(),
		ndf.New(),
	}
	return append(single, ensemble.New(single))
})

// unlisted has the algorithms that Find knows and users cannot choose.
var unlisted = sync.OnceValue(func() []algorithms.Algorithm { return []algorithms.Algorithm{external.New()} })

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
	for _, a := range slices.Concat(all(), unlisted(), extra) {
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

// Incomplete lists the algorithms that learn from labels in which degrees are missing, in the order of All.
func Incomplete() (names []string) {
	for _, name := range Names() {
		if LearnsFromIncomplete(name) {
			names = append(names, name)
		}
	}
	return names
}

// Weighted divides the algorithms into those that use the weights of samples and the others, in the order of All.
func Weighted() (use, refuse []string) {
	for _, a := range All() {
		if algorithms.WeightsError(a) == nil {
			use = append(use, a.Name())
		} else {
			refuse = append(refuse, a.Name())
		}
	}
	return use, refuse
}

// CheckWeights returns an error if an algorithm cannot use the weights of samples.
func CheckWeights(name string) error {
	a, err := Find(name)
	if err != nil {
		return nil // the caller says so
	}
	if err := algorithms.WeightsError(a); err != nil {
		_, refuse := Weighted()
		return errtext.Errorf(errtext.WrongData, "%w; all algorithms but %s use weights; without {weights}, all samples "+
			"count alike", err, strings.Join(refuse, ", "))
	}
	return nil
}

// TargetReaders lists the names of the algorithms that can learn targets in bounds.
func TargetReaders() (names []string) {
	for _, a := range All() {
		if ReadsTargets(a) {
			names = append(names, a.Name())
		}
	}
	return names
}

// LearnsFromIncomplete reports whether an algorithm learns from labels in which degrees are missing.
func LearnsFromIncomplete(name string) bool {
	a, err := Find(name)
	if err != nil {
		return false
	}
	p, ok := a.(algorithms.Partial)
	return ok && p.LearnsFromIncomplete()
}

// ReadsTargets reports whether an algorithm can learn targets in bounds.
func ReadsTargets(a algorithms.Algorithm) bool {
	r, ok := a.(algorithms.TargetReader)
	return ok && r.ReadsTargets()
}

// CheckTargets returns an error if an algorithm cannot learn labels that are targets in bounds, or learns nothing else
// and they are none. labels says what the labels are.
func CheckTargets(name string, targets bool, labels string) error {
	a, err := Find(name)
	if err != nil {
		return nil // the caller says so
	}
	switch {
	case targets && !ReadsTargets(a):
		return errtext.Errorf(errtext.WrongData,
			"%s predicts %s, but the labels are %s; these algorithms predict targets: %s", name, a.Predicts(), labels,
			strings.Join(TargetReaders(), ", "))
	case !targets && a.Predicts() == algorithms.Targets:
		return errtext.Errorf(errtext.WrongData, "%s predicts targets in bounds, but the labels are %s; {labels=bounded} "+
			"makes labels targets where the data are read or imported", name, labels)
	}
	return nil
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

// MeasuredSamples are the numbers of training samples of the measurements.
var MeasuredSamples = [3]int{2_000, 50_000, 500_000}

// A Measurement is what an algorithm with its default hyperparameters reached on a dataset of
// `coppice dataset generate --kind smooth --seed 7`, on one thread.
type Measurement struct {
	Samples int     `json:"samples"` // of training
	KL      float64 `json:"kl"`      // mean K-L on the test samples, in nats
	// CPUSeconds is the time of the whole command, which includes reading the file.
	CPUSeconds float64 `json:"cpu_seconds"`
}

// MeanBaselineKL is the K-L of the mean baseline on the test samples of each dataset.
var MeanBaselineKL = [len(MeasuredSamples)]float64{1.063, 1.072, 1.082}

// measured has K-L and CPU seconds by algorithm, for each of MeasuredSamples.
// docs/guides/choose-an-algorithm.md has the commands.
var measured = map[string][len(MeasuredSamples)][2]float64{
	"ldlf":              {{0.1497, 2.05}, {0.1193, 12.5}, {0.1189, 74.4}},
	"structrf":          {{0.7636, 1.2}, {0.6484, 43.6}},
	"rf":                {{0.7812, 0.86}, {0.6717, 44}},
	"dldl":              {{0.1314, 1.52}, {0.0047, 3.34}, {0.0142, 18.3}},
	"aa-bp":             {{0.1072, 0.38}, {0.0068, 8.13}, {0.0032, 26}},
	"cpnn":              {{0.1589, 0.61}, {0.0773, 77.8}},
	"sa-bfgs":           {{0.1013, 0.22}, {0.0963, 0.84}, {0.0954, 5.86}},
	"sa-iis":            {{0.1039, 5.9}, {0.0967, 133}},
	"ldl-ldm":           {{0.1014, 0.52}, {0.0964, 1.84}, {0.0955, 10.3}},
	"ldl-lrr":           {{0.1022, 1.76}, {0.0963, 5.78}},
	"ldllc":             {{0.1022, 0.2}, {0.0984, 1.11}},
	"ldl4c":             {{0.1055, 0.72}, {0.0965, 2.83}},
	"ldl-hr":            {{0.7400, 0.33}, {0.7403, 5.46}},
	"ldlm":              {{0.7400, 0.35}, {0.7403, 6.23}},
	"edl-lrl":           {{0.6393, 0.41}, {0.6341, 9.73}},
	"ldl-scl":           {{0.5733, 0.7}},
	"pt-bayes":          {{0.2322, 0.06}, {0.1555, 0.93}},
	"pt-svm":            {{0.1035, 11.7}},
	"ldlsf":             {{0.4889, 0.09}, {0.4515, 0.65}},
	"incomldl":          {{0.4588, 0.06}, {0.4418, 1.2}},
	"winldl":            {{0.6531, 0.32}, {0.6814, 8.51}},
	"df-ldl":            {{0.1023, 7.34}, {0.0961, 42.6}},
	"ldlogitboost":      {{0.2186, 30.3}},
	"aoso-ldlogitboost": {{0.2234, 4.86}, {0.1177, 93.3}},
	"ldlboost":          {{0.2453, 4.94}},
	"aa-knn":            {{0.6865, 0.17}, {0.5244, 15.5}},
	"ldsvr":             {{0.1213, 0.45}, {0.1132, 7.02}, {0.1147, 71.8}},
	"ndf":               {{0.5232, 0.96}, {0.5440, 19.3}},
	"ensemble":          {{0.1342, 43.2}},
}

// Measured returns the measurements of an algorithm, in the order of MeasuredSamples. There are
// none for algorithms that predict a number or targets, and for sizes with which training takes too long.
func Measured(name string) []Measurement {
	var all []Measurement
	for i, m := range measured[name] {
		if m[1] > 0 {
			all = append(all, Measurement{MeasuredSamples[i], m[0], m[1]})
		}
	}
	return all
}

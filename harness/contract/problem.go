package contract

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/generate"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

// problem is a small dataset.
type problem struct {
	name     string
	manifest *dataset.Manifest
	shards   []*dataset.Rows
}

// problems makes the datasets; the first is dense. Where numbers are predicted, the labels are a
// scale. Where targets can be learned, there is a dataset of targets; where nothing else can, all are such. Where
// weights are used, there is a dataset of samples with weights.
func problems(a algorithms.Algorithm) (list []*problem, err error) {
	predicts := a.Predicts()
	kinds := []struct {
		name  string
		o     generate.Options
		scale onScale
	}{
		{"dense", generate.Options{Rows: 150, Features: 5, Labels: 4, Density: 1, Seed: 1},
			onScale{truth: dataset.TrueValue}},
		{"sparse", generate.Options{Rows: 140, Features: 60, Labels: 3, Density: 0.1, Seed: 2},
			onScale{truth: dataset.TrueMode}},
		{"one feature", generate.Options{Rows: 130, Features: 1, Labels: 3, Density: 1, Seed: 3},
			onScale{truth: dataset.TrueExpected}},
		{"two labels", generate.Options{Rows: 130, Features: 4, Labels: 2, Density: 1, Seed: 4},
			onScale{truth: dataset.TrueValue, intervals: true}},
	}
	if r, ok := a.(algorithms.TargetReader); ok && r.ReadsTargets() {
		of := kinds[0]
		of.name = targetsName
		kinds = append(kinds, of)
	}
	if algorithms.WeightsError(a) == nil {
		of := kinds[0]
		of.name, of.o.Rows = weightsName, 110
		kinds = append(kinds, of)
	}
	for _, p := range kinds {
		src, err := generate.New(p.o)
		if err != nil {
			return nil, err
		}
		if predicts == algorithms.Number {
			p.scale.Source = src
			src = p.scale
		}
		if predicts == algorithms.Targets || p.name == targetsName {
			src = bounded{src}
		}
		if p.name == weightsName {
			src = weighted{src}
		}
		m, shards, err := importer.Build(src, importer.Options{})
		if err != nil {
			return nil, err
		}
		list = append(list, &problem{p.name, m, shards})
	}
	return list, nil
}

// seed is that of every job.
const seed = 11

// job is a job of an algorithm on a dataset.
type job struct {
	*problem
	a     algorithms.Algorithm
	spec  *round.Job
	roles []dataset.Roles
	data  *dataset.Data     // with all shards
	model *algorithms.Model // that another check has trained; nil if there is none
}

// newJob resolves settings. A fifth of the rows are test rows.
func newJob(a algorithms.Algorithm, p *problem, v param.Values) (*job, error) {
	r, err := a.Resolve(v, p.manifest)
	if err != nil {
		return nil, err
	}
	split := dataset.Split{Seed: seed, TestFraction: 0.2, ValidationFraction: r.ValidationFraction,
		ValidationMin: r.ValidationMin}
	spec := &round.Job{Algorithm: a.Name(), Numerics: round.Numerics, Seed: seed, Dataset: p.manifest.Digest(),
		Split: split, Params: r.Params, Bounds: p.manifest.LabelType.Bounds}
	roles, err := split.Assign(p.manifest.Rows, nil)
	if err != nil {
		return nil, err
	}
	j := &job{problem: p, a: a, spec: spec, roles: roles}
	j.data = j.dataOf(0, len(p.shards))
	return j, nil
}

// dataOf returns the job's data with the shards [lo, hi) only: reading another one panics.
func (j *job) dataOf(lo, hi int) *dataset.Data {
	d := dataset.NewData(j.manifest, j.roles)
	for i := lo; i < hi; i++ {
		d.SetShard(i, j.shards[i])
	}
	return d
}

func (j *job) trainer(state []byte) (algorithms.Trainer, error) {
	return j.a.NewTrainer(j.spec, j.manifest, state)
}

func (j *job) kernel() (round.Kernel, error) { return j.a.NewKernel(j.spec, j.manifest) }

// start returns a trainer at its beginning and an executor of one lane.
func (j *job) start() (algorithms.Trainer, *engine.Local, error) {
	t, err := j.trainer(nil)
	if err != nil {
		return nil, nil, err
	}
	k, err := j.kernel()
	if err != nil {
		return nil, nil, err
	}
	return t, j.local(k, j.data, 1), nil
}

// maxRounds bounds a job that is run to its end.
const maxRounds = 5000

var errEndless = fmt.Errorf("the job has not ended after %d rounds", maxRounds)

// local returns an executor of so many lanes.
func (j *job) local(k round.Kernel, d *dataset.Data, lanes int) *engine.Local {
	return engine.NewLocal(k, d, lanes, subJobs(d))
}

// onScale is a source whose labels are the numbers from scaleLow on, for algorithms that
// predict numbers.
type onScale struct {
	dataset.Source
	truth     dataset.Truth
	intervals bool
}

const scaleLow = 10

// Info implements dataset.Source.
func (s onScale) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType = dataset.LabelType{Scale: &dataset.Scale{Low: scaleLow, True: s.truth}}
	info.HasValues, info.HasIntervals = s.truth == dataset.TrueValue, s.intervals
	return info
}

// Scan implements dataset.Source. The exact number of a row is the expected value of its
// labels; that of every third row is whole.
func (s onScale) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		expected := float64(scaleLow)
		for i, v := range r.Labels {
			expected += float64(i) * v
		}
		if r.Number%3 == 0 {
			expected = math.Floor(expected)
		}
		r.Value, r.Interval = expected, [2]float64{expected - 0.25, expected + float64(r.Number%4)/4}
		return f(r)
	})
}

// targetsName is the name of the dataset of targets.
const targetsName = "targets"

// bounded is a source whose labels are targets from 0 to 1, as algorithms read them.
type bounded struct{ dataset.Source }

// Info implements dataset.Source.
func (s bounded) Info() dataset.Info {
	info := s.Source.Info()
	info.LabelType = dataset.LabelType{Bounds: &dataset.Bounds{Low: []float64{0}, High: []float64{1}}}
	return info
}

// Scan implements dataset.Source. The targets of every fifth row are at the bounds.
func (s bounded) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		for i, v := range r.Labels {
			if r.Labels[i] = math.Sqrt(v); r.Number%5 == 0 {
				r.Labels[i] = math.Round(r.Labels[i])
			}
		}
		return f(r)
	})
}

// weightsName is the name of the dataset whose samples have weights.
const weightsName = "weights"

// weighted is a source whose samples have the weights 0 to 2.
type weighted struct{ dataset.Source }

// Info implements dataset.Source.
func (s weighted) Info() dataset.Info {
	info := s.Source.Info()
	info.HasWeights = true
	return info
}

// Scan implements dataset.Source.
func (s weighted) Scan(f func(*dataset.Row) error) error {
	return s.Source.Scan(func(r *dataset.Row) error {
		r.Weight = float64(r.Number*7%5) / 2
		return f(r)
	})
}

// Kin is what the suite needs of other algorithms where one has sub-jobs or settings that name
// algorithms. Package registry imports every algorithm, and tests of most import this package: so
// this package cannot import registry.
type Kin struct {
	Find    func(name string) (algorithms.Algorithm, error)
	SubJobs func(d *dataset.Data) engine.SubJobRunner
}

var kin = Kin{
	Find: func(string) (algorithms.Algorithm, error) { return nil, errKin },
	SubJobs: func(*dataset.Data) engine.SubJobRunner {
		return func(context.Context, *round.Job) ([]byte, error) { return nil, errKin }
	},
}

var errKin = errors.New("this test has no other algorithms: see kintest.Use")

// SetKin sets what all later tests of this process find. Call it from TestMain or init.
func SetKin(k Kin) { kin = k }

func subJobs(d *dataset.Data) engine.SubJobRunner { return kin.SubJobs(d) }

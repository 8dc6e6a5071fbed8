// Package learner makes an algorithms.Algorithm of what an algorithm is: its settings, its
// trainer and kernel, its model, the fields of its state, and an estimate of its memory. What
// is the same for all algorithms is here: settings are parsed, checked and filled in, a trainer
// is started or restored, and states have versions.
package learner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/algorithms/kit/fields"
	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
)

// ErrModel is wrapped by every error about the tensors of a model.
var ErrModel = errors.New("the tensors are not a model of this algorithm")

// ErrNoLabels says that a dataset has nothing to learn.
var ErrNoLabels = errors.New("the dataset has no labels to learn")

// Definition is an algorithm with settings in a C.
type Definition[C any] struct {
	// Name is the word that selects the algorithm in a spec.
	Name string
	// Doc says what the algorithm is, in one line.
	Doc string
	// About says what the algorithm is for, and where it comes from.
	About algorithms.About
	// Incomplete is true if the algorithm learns from labels in which degrees are missing: see Job.Incomplete.
	Incomplete bool
	// Unweighted says why the algorithm cannot use the weights of samples (dataset.Rows.Weight), as a clause; "": it uses
	// them.
	Unweighted string
	// Predicts is what its models predict.
	Predicts algorithms.Output
	// Targets is true if it can also learn targets in bounds: see algorithms.TargetReader.
	Targets bool

	// Settings lists what a spec may say. The setting "preset", if there is one, selects
	// among the defaults.
	Settings param.Table[C]
	// Fill, if set, computes the settings that were not given and follow from others or
	// from the data. It runs before settings are checked.
	Fill func(c *C, given param.Values, m *dataset.Manifest)
	// Divide, if set, computes the settings that follow from the split of the job. If the algorithm divides the training
	// rows by itself, it calls dataset.Manifest.KeepGroups. Its error is a *param.Error.
	Divide func(c *C, s *dataset.Split, m *dataset.Manifest) error
	// Check, if set, returns a *param.Error where settings, each in its range, contradict
	// one another.
	Check func(c *C) error
	// Fits, if set, returns a *param.Error where settings do not go with the data.
	Fits func(c *C, m *dataset.Manifest) error
	// Validation, if set, returns the share of the training rows that the job validates
	// on, and the least number of these rows.
	Validation func(c *C) (share float64, least int)

	// Weights, if set, returns the digest of the weights that training begins from; "": there
	// are none. Trainer finds them in Job.WeightsFile.
	Weights func(c *C) string
	// FitsWeights, set where Weights is, returns an error if the bytes of these are not of the
	// job's network; a *param.Error where a setting is at fault.
	FitsWeights func(c *C, m *dataset.Manifest, file []byte) error

	// Trainer makes the trainer of a job, before its first round.
	Trainer func(j *Job[C]) (Trainer, error)
	// StateVersion is the version of the fields that Trainer.State lists.
	StateVersion byte
	// Kernel makes the kernel of a job.
	Kernel func(j *Job[C]) (round.Kernel, error)
	// SubJob, if set, returns the job of a unit of the rounds of child jobs that Trainer asks
	// for.
	SubJob func(j *Job[C], unit int) (*round.Job, error)
	// Model makes a model of its tensors, whose memory it may keep.
	Model func(tensors []algorithms.Tensor) (algorithms.Model, error)
	// Memory estimates the memory of a job's trainer.
	Memory func(c *C, m *dataset.Manifest) algorithms.Footprint
}

// Job is a job with its settings, which are checked.
type Job[C any] struct {
	*round.Job
	Config   *C
	Manifest *dataset.Manifest
}

// Incomplete reports whether degrees of labels may be missing (dataset.MissingDegree).
func (j *Job[C]) Incomplete() bool { return j.Manifest.LabelType.Incomplete || j.Split.Mask.Any() }

// Trainer is an algorithms.Trainer that lists the fields of its state. It embeds Base.
type Trainer interface {
	algorithms.Trainer
	// State lists the fields: what Next, Progress and Model depend on besides the job. Its
	// checks refuse a state that no run of the job can be in.
	State(l *fields.List)
	// Start begins the job. A trainer that is restored is not started.
	Start()
	binder
}

// binder is told by Define which fields make up the state.
type binder interface {
	bind(version byte, state func(*fields.List))
}

var _ binder = (*Base)(nil)

// Base is embedded in every trainer. It writes the trainer's state, starts with nothing, and
// has no counters.
type Base struct {
	version byte
	state   func(*fields.List)
}

func (b *Base) bind(version byte, state func(*fields.List)) { b.version, b.state = version, state }

// Start implements Trainer.
func (b *Base) Start() {}

// Counters implements algorithms.Trainer.
func (b *Base) Counters() map[string]uint64 { return nil }

// AppendState implements round.Trainer.
func (b *Base) AppendState(dst []byte) ([]byte, error) { return fields.Append(dst, b.version, b.state) }

// WriteState implements round.StateWriter.
func (b *Base) WriteState(w io.Writer) error { return fields.Write(w, b.version, b.state) }

// Define makes the algorithm of a definition.
func Define[C any](d Definition[C]) algorithms.Algorithm {
	if d.Check == nil {
		d.Check = func(*C) error { return nil }
	}
	if d.Fits == nil {
		d.Fits = func(*C, *dataset.Manifest) error { return nil }
	}
	if d.Weights == nil {
		d.Weights = func(*C) string { return "" }
	}
	return &algorithm[C]{d, sync.OnceValue(d.Settings.Params)}
}

// algorithm is a definition in which Check, Fits and Weights are set.
type algorithm[C any] struct {
	d      Definition[C]
	params func() []param.Param // computed once: an experiment of many methods asks for each
}

// Name implements algorithms.Algorithm.
func (a *algorithm[C]) Name() string { return a.d.Name }

// Doc implements algorithms.Algorithm.
func (a *algorithm[C]) Doc() string { return a.d.Doc }

// About implements algorithms.Algorithm.
func (a *algorithm[C]) About() algorithms.About { return a.d.About }

// Predicts implements algorithms.Algorithm.
func (a *algorithm[C]) Predicts() algorithms.Output { return a.d.Predicts }

// LearnsFromIncomplete implements algorithms.Partial.
func (a *algorithm[C]) LearnsFromIncomplete() bool { return a.d.Incomplete }

// Unweighted implements algorithms.Weigher.
func (a *algorithm[C]) Unweighted() string { return a.d.Unweighted }

// ReadsTargets implements algorithms.TargetReader.
func (a *algorithm[C]) ReadsTargets() bool { return a.d.Targets || a.d.Predicts == algorithms.Targets }

// Params implements algorithms.Algorithm.
func (a *algorithm[C]) Params() []param.Param { return slices.Clone(a.params()) }

// Resolve implements algorithms.Algorithm: the defaults of the preset first, then the given
// settings, then those that follow from them. Errors are *param.Error, or wrap ErrNoLabels.
func (a *algorithm[C]) Resolve(given param.Values, m *dataset.Manifest) (algorithms.Resolved, error) {
	c := new(C)
	given, err := ownValidation(given, a.params(), m)
	if err != nil {
		return algorithms.Resolved{}, err
	}
	if err := a.d.Settings.Fill(c, given, a.d.Name); err != nil {
		return algorithms.Resolved{}, err
	}
	if a.d.Fill != nil {
		a.d.Fill(c, given, m)
	}
	if err := a.d.Settings.Check(c); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := a.d.Check(c); err != nil {
		return algorithms.Resolved{}, err
	}
	if err := a.fits(c, m); err != nil {
		return algorithms.Resolved{}, err
	}
	r := algorithms.Resolved{Weights: a.d.Weights(c)}
	if a.d.Validation != nil {
		r.ValidationFraction, r.ValidationMin = a.d.Validation(c)
	}
	if r.ValidationFraction == 0 {
		r.ValidationMin = 0
	}
	if r.Params, err = a.d.Settings.JSON(c); err != nil {
		err = a.errorf("settings: %w", err)
	}
	return r, err
}

// Settings that the validation rows of a dataset decide.
const (
	validationFraction = "validation_fraction"
	refit              = "refit"
)

// ownValidation returns the settings that are given for a dataset with validation rows of its own: the fraction is that
// of these rows, at most a half, unless the algorithm shall not validate. There is no refit, which would train on them.
func ownValidation(given param.Values, params []param.Param, m *dataset.Manifest) (param.Values, error) {
	has := func(name string) bool {
		return slices.ContainsFunc(params, func(p param.Param) bool { return p.Name == name })
	}
	if m.Validation == nil || !has(validationFraction) || given[validationFraction] == 0.0 {
		return given, nil
	}
	own := float64(m.Validation.Rows) / float64(m.Rows)
	if own > 0.5 {
		own = 0.5
	}
	if given.Has(validationFraction) && given[validationFraction] != own {
		return nil, param.Errorf(validationFraction, "cannot be combined with {validation}: the dataset has validation "+
			"samples of its own, and draws none")
	}
	if given[refit] == true {
		return nil, param.Errorf(refit, "cannot be combined with {validation}: a refit trains on training and validation "+
			"samples, but validation samples of a file are never trained on")
	}
	given = maps.Clone(given)
	if given == nil {
		given = param.Values{}
	}
	if given[validationFraction] = own; has(refit) {
		given[refit] = false
	}
	return given, nil
}

// Divided implements algorithms.Divider.
func (a *algorithm[C]) Divided(params json.RawMessage, s *dataset.Split, m *dataset.Manifest) (json.RawMessage, error) {
	if a.d.Divide == nil {
		return params, nil
	}
	c, err := a.d.Settings.Parse(params)
	if err == nil {
		err = a.d.Divide(c, s, m)
	}
	if err != nil {
		return nil, err
	}
	return a.d.Settings.JSON(c)
}

func (a *algorithm[C]) fits(c *C, m *dataset.Manifest) error {
	if m.Labels == 0 {
		return a.errorf("%w", ErrNoLabels)
	}
	return a.d.Fits(c, m)
}

func (a *algorithm[C]) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", a.d.Name, fmt.Errorf(format, args...))
}

// config reads a job's settings.
func (a *algorithm[C]) config(j *round.Job) (*C, error) {
	c, err := a.d.Settings.Parse(j.Params)
	if err == nil {
		err = a.d.Check(c)
	}
	if err != nil {
		return nil, a.errorf("settings: %w", err)
	}
	return c, nil
}

// job reads and checks a job. An algorithm whose validation share differs from the split's would
// validate on rows that do not exist.
func (a *algorithm[C]) job(j *round.Job, m *dataset.Manifest) (*Job[C], error) {
	c, err := a.config(j)
	if err != nil {
		return nil, err
	}
	if a.d.Validation != nil {
		if share, _ := a.d.Validation(c); share != j.Split.ValidationFraction {
			return nil, a.errorf("the split has the validation fraction %v, but the settings have %v",
				j.Split.ValidationFraction, share)
		}
	}
	return &Job[C]{Job: j, Config: c, Manifest: m}, a.fits(c, m)
}

// checkWeights returns an error where a job does not come with the weights that its settings
// name.
func (a *algorithm[C]) checkWeights(j *round.Job, c *C) error {
	want := a.d.Weights(c)
	switch {
	case j.Weights != want:
		return a.errorf("init_from names the weights %q, but the job has the weights %q", want, j.Weights)
	case want != "" && j.WeightsFile == nil:
		return a.errorf("the initial weights %s are missing", want)
	}
	return nil
}

// NewTrainer implements algorithms.Algorithm. Errors about the state wrap fields.ErrState.
func (a *algorithm[C]) NewTrainer(j *round.Job, m *dataset.Manifest, state []byte) (algorithms.Trainer, error) {
	job, err := a.job(j, m)
	if err == nil {
		err = a.checkWeights(j, job.Config)
	}
	if err != nil {
		return nil, err
	}
	t, err := a.d.Trainer(job)
	if err != nil {
		return nil, err
	}
	t.bind(a.d.StateVersion, t.State)
	if state == nil {
		t.Start()
		return t, nil
	}
	if err := fields.Read(state, a.d.StateVersion, t.State); err != nil {
		return nil, a.errorf("%w", err)
	}
	return t, nil
}

// NewKernel implements algorithms.Algorithm.
func (a *algorithm[C]) NewKernel(j *round.Job, m *dataset.Manifest) (round.Kernel, error) {
	job, err := a.job(j, m)
	if err != nil {
		return nil, err
	}
	return a.d.Kernel(job)
}

// SubJob implements algorithms.Parent.
func (a *algorithm[C]) SubJob(j *round.Job, m *dataset.Manifest, unit int) (*round.Job, error) {
	if a.d.SubJob == nil {
		return nil, a.errorf("the algorithm has no sub-jobs")
	}
	job, err := a.job(j, m)
	if err != nil {
		return nil, err
	}
	return a.d.SubJob(job, unit)
}

// DecodeModel implements algorithms.Algorithm. Errors wrap ErrModel.
func (a *algorithm[C]) DecodeModel(tensors []algorithms.Tensor) (algorithms.Model, error) {
	m, err := a.d.Model(tensors)
	if err != nil {
		return nil, a.errorf("%w: %w", ErrModel, err)
	}
	return m, nil
}

// Footprint implements algorithms.Algorithm.
func (a *algorithm[C]) Footprint(j *round.Job, m *dataset.Manifest) (algorithms.Footprint, error) {
	c, err := a.config(j)
	if err != nil {
		return algorithms.Footprint{}, err
	}
	return a.d.Memory(c, m), nil
}

// FitsWeights implements algorithms.Beginner.
func (a *algorithm[C]) FitsWeights(j *round.Job, m *dataset.Manifest) error {
	c, err := a.config(j)
	if err == nil {
		err = a.checkWeights(j, c)
	}
	if err != nil || j.Weights == "" {
		return err
	}
	return a.d.FitsWeights(c, m, j.WeightsFile)
}

// Tensors is one pass over the tensors of a model, which lists them or reads them: the same
// calls, in the same order, do both. The first error ends a pass; the calls after it set
// nothing.
type Tensors struct {
	all     []algorithms.Tensor // listed so far, or left to read
	reading bool
	err     error
}

// ListTensors returns the tensors that model lists.
func ListTensors(model func(*Tensors)) []algorithms.Tensor {
	var l Tensors
	model(&l)
	return l.all
}

// ReadTensors sets what model lists to the values of tensors, whose memory is kept. Another
// name, type, shape or number of tensors is an error.
func ReadTensors(tensors []algorithms.Tensor, model func(*Tensors)) error {
	l := Tensors{all: tensors, reading: true}
	model(&l)
	l.Check(len(l.all) == 0, "the model has %d tensors, %d more than expected", len(tensors), len(l.all))
	return l.err
}

// Decoder returns what makes models M of tensors, whose memory they may keep. list lists the tensors of a model.
func Decoder[M any, P interface {
	*M
	algorithms.Model
}](list func(P, *Tensors)) func(tensors []algorithms.Tensor) (algorithms.Model, error) {
	return func(tensors []algorithms.Tensor) (algorithms.Model, error) {
		m := P(new(M))
		return m, ReadTensors(tensors, func(l *Tensors) { list(m, l) })
	}
}

// Reading reports whether the pass reads, and has found no error so far.
func (l *Tensors) Reading() bool { return l.reading && l.err == nil }

// Check refuses tensors that are being read unless ok; the format says what is wrong.
func (l *Tensors) Check(ok bool, format string, args ...any) {
	if l.reading && l.err == nil && !ok {
		l.err = fmt.Errorf(format, args...)
	}
}

// Number is a whole number of a model's settings, with its bounds.
type Number struct {
	v           *int
	least, most int
}

// Within is a number from least to most.
func Within(v *int, least, most int) Number { return Number{v, least, most} }

// Left returns the tensors that are left to read. Their names and shapes are a file's.
func (l *Tensors) Left() []algorithms.Tensor { return l.all }

// Targets returns the version of the format of a model: of targets in bounds if *predicts, else of distributions. Of a
// model that is being read, it sets *predicts by the version that the tensors begin with.
func (l *Tensors) Targets(predicts *bool, distributions, targets uint32) (format uint32) {
	if l.Reading() {
		*predicts = len(l.all) > 0 && len(l.all[0].U32) > 0 && l.all[0].U32[0] == targets
	}
	if *predicts {
		return targets
	}
	return distributions
}

// Settings lists the tensor "settings", the first of every model: the version of its format,
// then numbers, all as uint32. It reports whether the numbers are set.
func (l *Tensors) Settings(format uint32, numbers ...Number) bool {
	values := []uint32{format}
	for _, n := range numbers {
		values = append(values, uint32(*n.v))
	}
	l.U32("settings", &values, len(values))
	l.Check(values[0] == format, "the model has format %d, but this version reads format %d", values[0], format)
	for i, n := range numbers {
		v := int64(values[1+i])
		l.Check(v >= int64(n.least) && v <= int64(n.most), "the settings %v are out of range", values)
		if l.Reading() {
			*n.v = int(v)
		}
	}
	return l.err == nil
}

// U32 lists a tensor of uint32, row-major.
func (l *Tensors) U32(name string, v *[]uint32, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]uint32 { return &t.U32 })
}

// F32 lists a tensor of float32, row-major.
func (l *Tensors) F32(name string, v *[]float32, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]float32 { return &t.F32 })
}

// F64 lists a tensor of float64, row-major.
func (l *Tensors) F64(name string, v *[]float64, dims ...int) {
	list(l, name, v, dims, func(t *algorithms.Tensor) *[]float64 { return &t.F64 })
}

func list[T any](l *Tensors, name string, v *[]T, dims []int, values func(*algorithms.Tensor) *[]T) {
	if !l.reading {
		t := algorithms.Tensor{Name: name, Dims: dims}
		*values(&t) = *v
		l.all = append(l.all, t)
		return
	}
	l.Check(len(l.all) > 0, "the tensor %q is missing", name)
	if l.err != nil {
		return
	}
	t := &l.all[0]
	l.all = l.all[1:]
	l.Check(t.Name == name && slices.Equal(t.Dims, dims), "found tensor %q of shape %v, want %q of shape %v", t.Name,
		t.Dims, name, dims)
	n, have := 1, len(*values(t))
	for _, d := range dims {
		if d < 0 || d > 0 && n > math.MaxInt/d {
			n = -1 // the number is too great
			break
		}
		n *= d
	}
	l.Check(have == n && len(t.F32)+len(t.F64)+len(t.U32) == n, "tensor %q must have %d values", name, n)
	if l.err == nil {
		*v = *values(t)
	}
}

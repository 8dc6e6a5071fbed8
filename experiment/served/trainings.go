package served

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/engine/outcome/measures"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
	"github.com/coppice-ldl/coppice/job/predict"
	"github.com/coppice-ldl/coppice/job/spec"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxHeads bounds the heads of model files that are kept.
const maxHeads = 50_000

// trainings reads model files, and what they say of the trainings that made them.
type trainings struct {
	*shelf

	reading sync.Mutex      // guards all
	all     map[string]head // by path
}

// head is what lists say of a model.
type head struct {
	of                         stamp
	algorithm, dataset, digest string
	err                        error // why the file cannot be read
	measures                   *evaluation
}

// head returns the head of a model file.
func (t *trainings) head(p *place) head {
	t.reading.Lock()
	known, ok := t.all[p.path]
	t.reading.Unlock()
	if ok && known.of.is(p.file) {
		return known
	}
	now := head{of: p.file}
	job, err := t.read(p)
	if now.err = err; err == nil {
		now.algorithm, now.dataset, now.digest = job.Job.Algorithm, job.Dataset, job.Models[0].Digest
		now.measures = &evaluation{job.Measures, job.EvaluatedOn == heldOut}
	}
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.all == nil || len(t.all) >= maxHeads {
		t.all = make(map[string]head)
	}
	t.all[p.path] = now
	return now
}

// read describes the training that made a model file.
func (t *trainings) read(p *place) (*protocol.JobInfo, error) {
	in, err := t.root.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a file any more")
	}
	h, made, err := predict.ReadHead(io.NewSectionReader(in, 0, info.Size()), info.Size())
	if err != nil {
		return nil, err
	}
	return jobOf(p, h, made)
}

// heldOut is EvaluatedOn of a training with test samples.
const heldOut = "test samples"

// evaluation has what trainings may be sorted by.
type evaluation struct {
	measures map[string]float64
	held     bool
}

// jobOf describes the training of a model file as a job that is done.
func jobOf(p *place, h *modelfile.Head, made *pipeline.Provenance) (*protocol.JobInfo, error) {
	o := pipeline.Outcome{ModelDigest: h.Digest, Steps: made.Steps, BestStep: made.BestStep, RefitSteps: made.RefitSteps,
		Loss: made.Loss, Group: made.Group, EvaluatedOn: made.EvaluatedOn, Rows: made.Rows, Measures: made.Measures,
		Baselines: made.Baselines, Added: made.Added, Counters: made.Counters, Mixture: made.Mixture}
	given := protocol.Spec{Algorithm: made.Job.Algorithm, Dataset: made.Job.Dataset, Seed: &made.Job.Seed,
		TestFraction: made.Job.Split.TestFraction, Set: make(map[string]string)}
	for _, s := range spec.Settings(made.Job.Params) {
		given.Set[s.Key] = s.Value
	}
	b, err := json.Marshal(&o)
	if err != nil {
		return nil, err
	}
	j := unread(p)
	if j.Spec, err = json.Marshal(&given); err != nil {
		return nil, err
	}
	j.State, j.Dataset, j.Job, j.Rounds, j.Outcome = protocol.Done, made.Job.Dataset, made.Job, made.Steps, b
	j.Models = []protocol.ModelRef{{Digest: h.Digest, Bytes: uint64(p.file.size)}}
	j.EvaluatedOn, j.Measures = made.EvaluatedOn, make(map[string]float64)
	for i := range measures.All {
		name := measures.All[i].Name
		if s, ok := measures.Value(name, made.Measures, nil); ok && !math.IsNaN(s.Mean) && !math.IsInf(s.Mean, 0) {
			j.Measures[name] = s.Mean
		}
	}
	return j, nil
}

// unread describes a training whose model file was not read.
func unread(p *place) *protocol.JobInfo {
	return &protocol.JobInfo{ID: p.id, Index: index(stamp{}, p.file), Name: p.name, Submitted: p.file.seconds(),
		Ended: p.file.seconds(), Job: new(round.Job)}
}

// job is read, with an error as the error of a job.
func (t *trainings) job(p *place) *protocol.JobInfo {
	j, err := t.read(p)
	if err != nil {
		j = unread(p)
		j.State, j.Error = protocol.Failed, fmt.Sprintf("%s: %v", p.path, err)
	}
	return j
}

// Package open opens a job to compute its tasks: for a worker, the leader's verifier, and the
// runner of --local and of folds. So all of them prepare a job, and check its dataset, in the
// same way. They differ in the source of shards, in memory and in executors.
//
//	job, err := open.Open(spec, manifest, blob)   // checks, roles of rows, kernel, weights
//	_, err = job.AddShard(i, rows)                // checked against the manifest, once
//	err = engine.RunTask(partial, job.Kernel, task, job.Data, ...)
//	child, err := job.SubJob(childSpec)           // a fold, on the same shards
//
// The trainer is not here: the leader has one and computes no task. A panic of an
// algorithm becomes an error by engine.Guard.
package open

import (
	"fmt"
	"sync"

	"github.com/coppice-ldl/coppice/algorithms/external"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Job is an open job: everything that tasks are computed with, but for the shards that
// were not added yet. It is safe for concurrent use.
type Job struct {
	Spec   *round.Job
	Kernel round.Kernel
	Data   *dataset.Data // the manifest, the rows' roles, and the shards

	folds  []uint16   // of rows; nil unless the split lists them
	groups []uint16   // of rows; nil unless the split names them
	adds   sync.Mutex // held while a shard is added
}

// Blob returns a blob that a job names by its digest: the encoded list of folds or groups of a split
// (dataset.EncodeFolds), or weights (Job.Weights). bytes is its size; 0: it is not known.
type Blob func(digest string, bytes int64) ([]byte, error)

// Open prepares a job on the dataset of a manifest, without shards. The folds that its split
// lists, and the weights that it begins from, come from blob. An error says that the job and the
// dataset do not belong together, that no import makes such a manifest, or that this version of
// Coppice cannot compute the job; what blob returns is wrapped.
func Open(spec *round.Job, m *dataset.Manifest, blob Blob) (j *Job, err error) {
	defer engine.Guard(&err, "setting up the job")
	if digest := m.Digest(); digest != spec.Dataset {
		return nil, fmt.Errorf("the job needs dataset %.12s, but got %.12s", spec.Dataset, digest)
	}
	if err := m.Check(); err != nil {
		return nil, err
	}
	if err := spec.Split.Check(); err != nil {
		return nil, err
	}
	if divided := m.Divided().Rows; spec.Split.Divided(m.Rows) != divided || (m.Validation != nil) !=
		(spec.Split.ValidationFrom > 0) {
		return nil, fmt.Errorf("the job divides %d samples, but %d samples of the dataset are no validation samples",
			spec.Split.Divided(m.Rows), divided)
	}
	var folds, groups []uint16
	if digest := spec.Split.Assigned; digest != "" {
		b, err := blob(digest, 2*int64(spec.Split.AssignedLength(m.Rows)))
		if err != nil {
			return nil, fmt.Errorf("the job's list of folds cannot be read: %w", err)
		}
		if folds, err = spec.Split.Decode(b, m.Rows); err != nil {
			return nil, err
		}
	}
	if digest := spec.Split.Groups; digest != "" {
		rows := spec.Split.Divided(m.Rows)
		b, err := blob(digest, 2*int64(rows))
		if err != nil {
			return nil, fmt.Errorf("the groups of the samples cannot be read: %w", err)
		}
		if groups, err = dataset.DecodeFolds(b, rows); err != nil {
			return nil, err
		}
	}
	return open(spec, m, folds, groups, blob)
}

// open opens a job with the folds and the groups that its split names, and with the weights that it begins from.
func open(spec *round.Job, m *dataset.Manifest, folds, groups []uint16, blob Blob) (*Job, error) {
	if spec.Weights != "" {
		b, err := blob(spec.Weights, 0)
		if err != nil {
			return nil, fmt.Errorf("the initial weights cannot be read: %w", err)
		}
		if spec, err = spec.WithWeights(b); err != nil {
			return nil, err
		}
	}
	roles, err := spec.Split.AssignGrouped(m.Rows, folds, groups)
	if err != nil {
		return nil, err
	}
	kernel, err := pipeline.NewKernel(spec, m)
	if err != nil {
		return nil, err
	}
	j := &Job{Spec: spec, Kernel: kernel, Data: dataset.NewData(m, roles), folds: folds, groups: groups}
	if spec.Split.Groups != "" {
		j.Data.Groups = groups
	}
	return j, nil
}

// AddShard checks that rows are shard i of the manifest and adds them, unless the job has
// that shard already: then it reports false. An error wraps dataset.ErrFormat.
func (j *Job) AddShard(i int, rows *dataset.Rows) (added bool, err error) {
	if err := j.Data.Manifest.CheckShard(i, rows); err != nil {
		return false, err
	}
	j.adds.Lock()
	defer j.adds.Unlock()
	if j.Data.HasShard(i) {
		return false, nil
	}
	j.Data.SetShard(i, rows)
	return true, nil
}

// SubJob opens a sub-job, a fold, on the shards of j, which has them all, and with its weights.
// The shards are not checked again.
func (j *Job) SubJob(spec *round.Job) (child *Job, err error) {
	defer engine.Guard(&err, "setting up the fold")
	weights := func(string, int64) ([]byte, error) { return j.Spec.WeightsFile, nil }
	if spec.Algorithm == external.Name {
		own := *spec
		own.WeightsFile = j.Spec.WeightsFile
		spec = &own
	}
	if child, err = open(spec, j.Data.Manifest, j.folds, j.groups, weights); err != nil {
		return nil, err
	}
	for i := range j.Data.Manifest.Shards {
		child.Data.SetShard(i, j.Data.Shard(i))
	}
	return child, nil
}

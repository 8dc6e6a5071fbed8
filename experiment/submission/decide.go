package submission

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/folds"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Cluster reads what a cluster has, with its datasets.
type Cluster interface {
	Source
	// FindDataset returns a dataset by its name; nil: there is none.
	FindDataset(name string) *protocol.Dataset
	// MayTrain returns an error if the caller of the request may not train on a dataset.
	MayTrain(ctx context.Context, d *protocol.Dataset) error
	// ReadSent returns a blob to which the caller of the request may refer.
	ReadSent(ctx context.Context, digest string) ([]byte, error)
}

// Decide reads the spec of a request and decides which of its runs are added to the experiment. A check also takes
// datasets that the cluster does not have, and its submission is not to be sent. The error is experiment.Errors if the
// spec or its data have mistakes: all of them.
func Decide(ctx context.Context, on Cluster, r *protocol.ExperimentRequest, check bool) (*Submission, error) {
	if len(r.Spec) > experiment.MaxBytes {
		return nil, requestErrorf("the spec has %s bytes; at most %s are allowed", units.Count(len(r.Spec)),
			units.Count(experiment.MaxBytes))
	}
	if len(r.File) > maxPath || len(r.Data) > maxPath || strings.ContainsFunc(r.File+r.Data, unicode.IsControl) {
		return nil, requestErrorf("file and data: want names of at most %d bytes without control characters", maxPath)
	}
	s, err := experiment.Parse(ctx, cmp.Or(r.File, "spec"), []byte(r.Spec))
	var mistakes experiment.Errors
	if err != nil && (s == nil || !mistakes.Add(err)) {
		return nil, err
	}
	if s.Data = r.Data; r.NoBudget {
		s.NoBudgets()
	}
	if len(r.Record) > 0 {
		if err := s.SetRecorded(r.Record); err != nil {
			return nil, requestErrorf("record: %v", err)
		}
	}
	plans, skipped, err := planAll(ctx, on, s, r, check)
	if err != nil && !mistakes.Add(err) {
		return nil, err
	}
	if err := mistakes.Sorted(); err != nil {
		return nil, err
	}
	for name := range r.Datasets {
		if !slices.ContainsFunc(s.Datasets, func(d experiment.Dataset) bool { return d.Name == name && d.On == "" }) {
			return nil, requestErrorf("the spec has no dataset %.80q that is a file", name)
		}
	}
	if len(plans) == 0 {
		return nil, requestErrorf("%s: the files of all datasets are missing", r.File)
	}
	e, err := Read(ctx, on, s.Name)
	if err != nil {
		return nil, err
	}
	sub, err := e.Add(ctx, s, plans, skipped, Options{RetryFailed: r.RetryFailed, RecordAgain: r.RecordAgain,
		Models: r.KeepModels})
	if err == nil && sub.Empty && len(e.Jobs) == 0 {
		err = requestErrorf("%s: no method supports any dataset, so there is nothing to run: %s", r.File,
			strings.Join(sub.Plan.Refused, "; "))
	}
	if err == nil {
		sub.digests = make(map[string]string)
		for _, p := range plans {
			sub.digests[p.On] = p.Manifest.Digest()
		}
	}
	return sub, err
}

// Current reports whether the experiment and its datasets are as they were when the submission was decided:
// the experiment has the same jobs in the same states, and the datasets have the same content.
func (s *Submission) Current(ctx context.Context, on Cluster) (bool, error) {
	now, err := Read(ctx, on, s.Name)
	if err != nil {
		return false, err
	}
	for name, digest := range s.digests {
		if d := on.FindDataset(name); d == nil || d.Digest != digest {
			return false, nil
		}
	}
	return slices.Equal(s.jobs, now.states()), nil
}

// planAll plans the runs of each dataset. Skipped are the names of the datasets without a file. The error lists what is
// wrong with every dataset.
func planAll(ctx context.Context, on Cluster, s *experiment.Spec, r *protocol.ExperimentRequest,
	check bool) (plans []Plan, skipped []string, err error) {
	var mistakes experiment.Errors
	for i := range s.Datasets {
		d := &s.Datasets[i]
		sent := r.Datasets[d.Name]
		if sent.Missing && d.On == "" {
			if !s.SkipMissing {
				mistakes.Add(s.Error(d.At, "dataset %s: its file is missing; missing files can be skipped with {key "+
					"missing=skip} in the spec", d.Name))
			}
			skipped = append(skipped, d.Name)
			continue
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		p, err := planOne(ctx, on, s, d, &sent, check)
		if err != nil && !mistakes.Add(err) {
			return nil, nil, err
		}
		plans = append(plans, p)
	}
	return plans, skipped, mistakes.Sorted()
}

// maxList bounds the bytes of a list of folds that a plan makes, as the cluster bounds the bytes of a blob.
const maxList = 256 << 20

// planOne plans the runs of a dataset.
func planOne(ctx context.Context, on Cluster, s *experiment.Spec, d *experiment.Dataset, sent *protocol.ExperimentData,
	check bool) (none Plan, _ error) {
	name := d.On
	if name == "" {
		name = sent.Dataset
	}
	data := &experiment.Data{Manifest: sent.Manifest, MaxList: maxList}
	switch there := on.FindDataset(name); {
	case check && data.Manifest != nil && d.On == "":
		if err := data.Manifest.Check(); err != nil {
			return none, requestErrorf("dataset %s: %v", d.Name, err)
		}
		there = on.FindDataset(d.Name)
		if there != nil && there.Digest != data.Manifest.Digest() {
			return none, s.Error(d.At, "a dataset %q with other content exists on the cluster; give this experiment another "+
				"name with the key name", d.Name)
		}
	case data.Manifest != nil:
		return none, requestErrorf("dataset %s: only a check takes a manifest; import the dataset and send its name", d.Name)
	case name == "":
		return none, s.Error(d.At, "dataset %s is a file, which a coordinator does not read; import it and send its name "+
			"on the cluster", d.Name)
	case there == nil:
		return none, s.Located(d.At, fmt.Errorf("%w %q", ErrNoDataset, name))
	default:
		if err := on.MayTrain(ctx, there); err != nil {
			return none, err
		}
		data.Manifest = there.Manifest
	}
	if g := data.Manifest.Groups; g != nil && d.Folds.Way == folds.Groups {
		b, err := on.ReadSent(ctx, g.Digest)
		if err != nil {
			return none, fmt.Errorf("the groups of dataset %s: %w", d.Name, err)
		}
		if data.Groups, err = dataset.DecodeFolds(b, data.Manifest.Divided().Rows); err != nil {
			return none, fmt.Errorf("the groups of dataset %s: %w", d.Name, err)
		}
	}
	if d.Folds.Way == folds.File {
		f := sent.Folds
		if f == nil {
			return none, s.Error(d.Folds.At, "the folds of dataset %s are a file, which a coordinator does not read; upload "+
				"the list as a blob and send its digest", d.Name)
		}
		if !blobs.Valid(f.Digest) {
			return none, requestErrorf("the folds of dataset %s: %.80q is not a digest", d.Name, f.Digest)
		}
		b, err := on.ReadSent(ctx, f.Digest)
		if err != nil {
			return none, fmt.Errorf("the folds of dataset %s: %w", d.Name, err)
		}
		if data.Splits, err = dataset.DecodeSplits(b, f.Folds, f.Overlap, data.Manifest.Divided().Rows); err != nil {
			return none, s.Error(d.Folds.At, "the folds of dataset %s: %v", d.Name, err)
		}
	}
	if x := sent.External; x != nil {
		if !blobs.Valid(x.Digest) {
			return none, requestErrorf("the predictions for dataset %s: %.80q is not a digest", d.Name, x.Digest)
		}
		b, err := on.ReadSent(ctx, x.Digest)
		if err != nil {
			return none, fmt.Errorf("the predictions for dataset %s: %w", d.Name, err)
		}
		if data.External, err = experiment.NewExternal(x, b); err != nil {
			return none, requestErrorf("the predictions for dataset %s: %v", d.Name, err)
		}
	}
	p, err := experiment.NewPlan(ctx, s, d, data)
	return Plan{p, name}, err
}

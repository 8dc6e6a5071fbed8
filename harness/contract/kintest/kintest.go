// Package kintest gives tests of algorithms with sub-jobs the registered algorithms.
package kintest

import (
	"context"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/contract"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// Use makes the suite find the registered algorithms and run sub-jobs. Call it from init.
func Use() { contract.SetKin(contract.Kin{Find: registry.Find, SubJobs: subJobs}) }

// children runs sub-jobs on the shards of d, each with roles of its own.
func subJobs(d *dataset.Data) engine.SubJobRunner {
	return func(ctx context.Context, spec *round.Job) ([]byte, error) {
		roles, err := spec.Split.Assign(d.Manifest.Rows, nil)
		if err != nil {
			return nil, err
		}
		own := dataset.NewData(d.Manifest, roles)
		for i := range d.Manifest.Shards {
			own.SetShard(i, d.Shard(i))
		}
		t, err := pipeline.New(spec, d.Manifest, nil)
		if err != nil {
			return nil, err
		}
		k, err := pipeline.NewKernel(spec, d.Manifest)
		if err != nil {
			return nil, err
		}
		if err := engine.Drive(ctx, t, 0, engine.NewLocal(k, own, 1, nil), func(uint64, round.Trainer) error {
			return nil
		}); err != nil {
			return nil, err
		}
		o, err := t.Outcome()
		if err != nil {
			return nil, err
		}
		return o.Encode()
	}
}

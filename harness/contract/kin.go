package contract

import (
	"context"
	"errors"

	"github.com/coppice-ldl/coppice/algorithms"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
)

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

package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// FuzzJob: a job and its manifest come as JSON, in a Setup and from the log. They
// are refused, or a worker can make the kernel and its memory, and the coordinator
// the trainer and its first round.
func FuzzJob(f *testing.F) {
	for _, w := range []*work{artificial(f), folds(f),
		newNumbers(f, dataset.Split{Seed: 5, TestFraction: 0.3, Inner: 3})} {
		job, err := json.Marshal(w.job)
		if err != nil {
			f.Fatal(err)
		}
		manifest, err := json.Marshal(w.data.Manifest)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(job, manifest)
	}
	f.Add(
		[]byte(
			`{"algorithm":"cells","numerics":1,"split":{"folds":2},"cells":{"rows":[{"algorithm":"rf","settings":{}},{"only":[1]}],"repeats":2,"folds":2}}`), []byte(`{"format":1,"rows":9}`))
	f.Add([]byte(`{"algorithm":"cells","numerics":1,"cells":{"rows":[{}],"repeats":-1,"folds":1000000}}`),
		[]byte(`{"format":1,"rows":9}`))
	f.Add([]byte(`{"algorithm":"rf","numerics":1,"folds":-1,"split":{"folds":-9,"fold":7}}`),
		[]byte(`{"format":1,"rows":9}`))
	f.Add([]byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, job, manifest []byte) {
		j, m := new(round.Job), new(dataset.Manifest)
		if json.Unmarshal(job, j) != nil || json.Unmarshal(manifest, m) != nil || m.Check() != nil || !small(j, m) {
			return
		}
		allocs.AtMost(t, 512<<20, "a job", func() {
			if roles, err := j.Split.Assign(m.Rows, nil); err == nil {
				dataset.NewData(m, roles)
			}
			if k, err := pipeline.NewKernel(j, m); err == nil {
				k.NewScratch()
			}
			if tr, err := pipeline.New(j, m, nil); err == nil {
				tr.Next()
				tr.Progress()
				tr.AppendState(nil)
			}
		})
	})
}

// small reports whether a job's memory, which its settings may ask for, is little
// enough to be made thousands of times.
func small(j *round.Job, m *dataset.Manifest) bool {
	var sizes struct{ Trees, Depth, Outputs int }
	json.Unmarshal(j.Params, &sizes)
	if j.Cells != nil && (len(j.Cells.Rows) > 9 || j.Cells.Repeats > 1<<5 || j.Cells.Folds > 1<<5) {
		return false
	}
	return m.Rows <= 1<<12 && m.Features <= 1<<12 && m.Labels <= 1<<8 && j.Folds <= 1<<12 &&
		sizes.Trees <= 10 && sizes.Depth <= 8 && sizes.Outputs <= 1<<8
}

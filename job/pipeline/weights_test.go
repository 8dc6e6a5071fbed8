package pipeline_test

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// TestKernelRefusesWeights: the kernel of an algorithm that cannot use weights refuses a dataset with weights. So a
// worker of a version without weights computes no task of such a job.
func TestKernelRefusesWeights(t *testing.T) {
	w := artificial(t)
	m := *w.data.Manifest
	m.HasWeights = true
	a, err := registry.Find("aa-knn")
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(nil, &m)
	if err != nil {
		t.Fatal(err)
	}
	w.job.Algorithm, w.job.Params = a.Name(), r.Params
	if _, err := pipeline.NewKernel(w.job, &m); err == nil ||
		!strings.Contains(err.Error(), "aa-knn cannot use the weights of samples, because ") {
		t.Errorf("error %v", err)
	}
}

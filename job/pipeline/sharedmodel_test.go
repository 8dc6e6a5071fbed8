package pipeline_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/job/local"
)

// TestPair: a model that is evaluated as it is, and one that travels as bytes, give
// the same outcome and file; so does a file that is written instead of kept.
func TestPair(t *testing.T) {
	works := map[string]*work{"dense": artificial(t), "sparse": sparse(t)}
	for _, name := range []string{"structrf", "rf", "ndf"} { // their models travel in pieces
		works[name] = forestOf(t, name)
	}
	for name, w := range works {
		apart := w.drive(t, nil, 0, ignore)
		together := w.run(t, w.job)
		if diff := cmp.Diff(apart, together); diff != "" {
			t.Errorf("%s: in one process (-apart +together):\n%s", name, diff)
		}
		var file bytes.Buffer
		written, err := local.Run(context.Background(), w.job, w.data, local.Options{Lanes: 1, Model: &file})
		if err != nil {
			t.Fatal(err)
		}
		if len(written.Model) > 0 || !bytes.Equal(file.Bytes(), apart.Model) {
			t.Errorf("%s: %d bytes were kept, %d written, want %d", name, len(written.Model), file.Len(), len(apart.Model))
		}
		written.Model = apart.Model
		if diff := cmp.Diff(apart, written); diff != "" {
			t.Errorf("%s: written (-want +got):\n%s", name, diff)
		}
	}
}

// forestOf is a job of a forest of three trees.
func forestOf(t *testing.T, algorithm string) *work {
	t.Helper()
	w := artificial(t)
	a, err := registry.Find(algorithm)
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Resolve(param.Values{"trees": int64(3), "max_depth": int64(4)}, w.data.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	w.job.Algorithm, w.job.Params = algorithm, r.Params
	return w
}

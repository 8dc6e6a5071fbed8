package predict

import (
	"encoding/json"
	"errors"
	"runtime"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/modelfile"
	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/job/pipeline"
)

// FuzzProvenance: any text is a provenance with a job, or a corrupt one, and takes memory in proportion.
func FuzzProvenance(f *testing.F) {
	b, err := json.Marshal(pipeline.Provenance{Job: &round.Job{Algorithm: "ldlf"}, LabelNames: []string{"a", "b"},
		LabelType: dataset.LabelType{Classes: true}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"job": {}, "label_names": [1]}`))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := decodeProvenance(b)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 128*uint64(len(b))+64<<10 {
			t.Fatalf("%d bytes were allocated for a text of %d", n, len(b))
		}
		if err == nil && p.Job == nil || err != nil && !errors.Is(err, modelfile.ErrCorrupt) {
			t.Fatalf("%+v, %v", p, err)
		}
	})
}

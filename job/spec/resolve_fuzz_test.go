package spec

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
	"github.com/coppice-ldl/coppice/protocol"
)

// FuzzResolve: the spec of a submission comes as JSON: it is refused with the name
// of what is wrong, or makes a job that resolves to itself.
func FuzzResolve(f *testing.F) {
	m, _ := datatest.Artificial(f, 300)
	for _, text := range []string{
		`{"algorithm":"ldlf"}`, `{"algorithm":"rf","seed":18446744073709551615,"folds":10}`,
		`{"algorithm":"structrf","settings":{"trees":"3","features":"1e-300"},"test_fraction":0.999}`,
		`{"algorithm":"ldlf","settings":{"trees":"1e9","depth":"-1","learning_rate":"0x1p-2"}}`,
		`{"algorithm":"ldlf","folds":-1}`, `{"algorithm":"ldlf","folds":65537}`, `{}`, `null`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s protocol.Spec
		if json.Unmarshal(b, &s) != nil {
			return
		}
		var j *round.Job
		var err error
		allocs.AtMost(t, 256*len(b)+1<<20, "a submission", func() { j, err = Resolve(s, m) })
		if err != nil {
			var p *param.Error
			if !errors.As(err, &p) && err.Error() == "" {
				t.Fatalf("error %v", err)
			}
			return
		}
		if _, err := j.Split.Assign(m.Rows, make([]uint16, m.Rows)); err != nil {
			t.Fatalf("the split of %s: %v", b, err)
		}
		once, _ := json.Marshal(j)
		back := new(round.Job)
		if err := json.Unmarshal(once, back); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(back); string(again) != string(once) {
			t.Fatalf("a job changes on the way: %s, then %s", once, again)
		}
	})
}

package coordinator

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is asked for, the parts are within the whole, and the connections within
// what the process may have open.
func TestPartsFitTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, err := Budget{
			Messages:    rapid.Int64Range(0, 1<<40).Draw(t, "messages"),
			Connections: rapid.IntRange(0, 1<<20).Draw(t, "connections"),
		}.prepared()
		if err != nil {
			if !errors.Is(err, ErrUsage) {
				t.Fatal(err)
			}
			return
		}
		p := b.parts()
		if sum := p.send + p.received + 2*p.backlog + p.bodies; sum > b.Messages || p.largest() > p.received || p.backlog < 4<<20 {
			t.Fatalf("%+v of %d", p, b.Messages)
		}
		may := rapid.Uint64Range(0, 1<<23).Draw(t, "descriptors")
		fit, note, err := b.within(may)
		if err != nil {
			if may >= ownDescriptors+perConnection*LeastConnections || !strings.Contains(err.Error(), "ulimit -n") {
				t.Fatalf("%d descriptors: %v", may, err)
			}
			return
		}
		if uint64(ownDescriptors+perConnection*fit.Connections) > may || fit.Connections < LeastConnections || (note == "") != (fit == b) {
			t.Fatalf("%d descriptors: %+v of %+v, %q", may, fit, b, note)
		}
	})
}

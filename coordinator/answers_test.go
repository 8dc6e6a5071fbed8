package coordinator_test

import (
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// A client that asks for a blob and names the subject of a worker, or of all, for the answer
// has none sent there.
func TestAnswersGoToWhoAsks(t *testing.T) {
	ctx := deadline(t)
	c := start(t, 1, 0)
	c.leader(ctx)
	info, err := c.client.Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := c.client.PutBlob(ctx, []byte("a blob"))
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Subjects{Cluster: info.ID}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS, Name: "w", Answers: s.Answers("w")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	var answers, others atomic.Int64
	for subject, n := range map[string]*atomic.Int64{s.Answers("w") + ".x": &answers, s.Work("w"): &others, s.Lead(): &others} {
		sub, err := conn.Subscribe(subject, func(m bus.Message) {
			if k, err := protocol.KindOf(m.Data); err == nil && k == protocol.KindBlobPiece {
				n.Add(1)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sub.Close)
	}
	get := (&protocol.BlobGet{Digest: digest, Length: 6}).Append(nil)
	testkit.Until(t, "answers", func() bool { // each turn asks for all three
		for _, reply := range []string{s.Work("w"), s.Lead(), s.Answers("w") + ".x"} {
			if err := conn.Send(s.Blobs(), reply, get); err != nil {
				t.Fatal(err)
			}
		}
		return answers.Load() > 2
	})
	if n := others.Load(); n > 0 {
		t.Errorf("%d answers went to others", n)
	}
}

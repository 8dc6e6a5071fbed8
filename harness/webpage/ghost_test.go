package webpage_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// markup is a text that would run a script if a page took it for markup.
const markup = `<img src=x onerror=alert(1)>"'&--></script>`

// ghost is a worker that says markup of itself. It computes nothing: each task fails with markup as the reason, or gets
// no answer.
type ghost struct {
	conn     *bus.Conn
	subjects protocol.Subjects
	beat     protocol.Heartbeat
	answers  atomic.Bool // true if tasks fail
}

// haunt has a ghost join a cluster, with all shards of a dataset, until the test ends.
func haunt(t *testing.T, c *proc.Cluster, name, dataset string) *ghost {
	t.Helper()
	ctx := t.Context()
	info, err := c.Client().Cluster(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d, err := c.Client().Datasets().Get(ctx, dataset)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := bus.Connect(ctx, bus.Options{URLs: info.NATS, Name: name})
	if err != nil {
		t.Fatal(err)
	}
	g := &ghost{conn: conn, subjects: protocol.Subjects{Cluster: info.ID}, beat: protocol.Heartbeat{Worker: name,
		Version: markup, Protocol: protocol.Version, Numerics: round.Numerics, Slots: 2, Full: true, Host: markup,
		Address: markup, Load: 1.5, RoundTrip: 250}}
	for _, s := range d.Manifest.Shards {
		g.beat.Holds = append(g.beat.Holds, s.Digest)
	}
	sub, err := conn.Subscribe(g.subjects.Work(name), g.take)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range wait.Every(ctx, time.Duration(info.Heartbeat)*time.Millisecond) {
			_ = conn.Send(g.subjects.Heartbeats(name), "", g.beat.Append(nil)) // an error: it is unreachable for a while
		}
	}()
	t.Cleanup(func() {
		<-ended
		sub.Close()
		conn.Close()
	})
	return g
}

// take answers messages.
func (g *ghost) take(m bus.Message) {
	messages := [][]byte{m.Data}
	if kind, _ := protocol.KindOf(m.Data); kind == protocol.KindBundle {
		var b protocol.Bundle
		if b.Decode(m.Data) != nil {
			return
		}
		messages = b.Messages
	}
	for _, one := range messages {
		var r protocol.Run
		if kind, _ := protocol.KindOf(one); kind != protocol.KindRun || r.Decode(one) != nil || !g.answers.Load() {
			continue
		}
		for _, task := range r.Tasks {
			fail := protocol.Fail{Stamp: r.Stamp, Worker: g.beat.Worker, Task: task, Permanent: true, Reason: markup}
			_ = g.conn.Send(m.Reply, "", fail.Append(nil)) // an error: the task gets no answer
		}
	}
}

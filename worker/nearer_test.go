package worker

import (
	"slices"
	"testing"
	"time"

	"github.com/coppice-ldl/coppice/worker/batch"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/harness/testkit/natstest"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// TestLeaderFirst: the leader's own NATS server comes first, an external one stays
// where it is, and what the coordinators said is left alone.
func TestLeaderFirst(t *testing.T) {
	c := &protocol.Cluster{
		NATS: []string{"nats://a", "nats://b", "nats://c"}, Leader: "c",
		Coordinators: []protocol.MemberEntry{{ID: "a", NATS: "nats://a"}, {ID: "c", NATS: "nats://c"}},
	}
	if got, want := leaderFirst(c, ""), []string{"nats://c", "nats://a", "nats://b"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if c.NATS[0] != "nats://a" {
		t.Error("the cluster's own list was changed")
	}
	if got, want := leaderFirst(c, "a"), []string{"nats://c", "nats://b", "nats://a"}; !slices.Equal(got, want) {
		t.Errorf("to avoid a: %v, want %v", got, want)
	}
	c.NATS = []string{"nats://x", "nats://y"}
	if got := leaderFirst(c, "a"); !slices.Equal(got, c.NATS) {
		t.Errorf("%v, want %v", got, c.NATS)
	}
}

// TestMovesNearer: a worker that is connected to another server than the leader's own
// moves there at once, and what it works at goes on; where the server is out of reach it
// stays.
func TestMovesNearer(t *testing.T) {
	d := importData(t, dense())
	options := serverOptions
	options.Name, options.Cluster, options.RoutePort = "b", "nearer", -1
	c := newClusterOf(t, options)
	c.add(d)
	options.Name, options.Routes = "a", []string{c.server.RouteURL()}
	server := natstest.Server(t, options)
	eventually(t, "a route", func() bool { return server.Routes() == 1 })
	const nowhere = "nats://127.0.0.1:1"
	c.set(func(i *protocol.Cluster) {
		i.NATS = []string{c.server.ClientURL(), server.ClientURL(), nowhere}
		i.Coordinators = []protocol.MemberEntry{
			{ID: "b", NATS: c.server.ClientURL()}, {ID: "a", NATS: server.ClientURL()}, {ID: "x", NATS: nowhere},
		}
	})
	leads := func(l *leader) *leader {
		c.set(func(i *protocol.Cluster) { i.Leader, i.Epoch = l.id, l.epoch })
		l.announce()
		return l
	}
	// compute has the worker compute a round, asked again where a message is lost that
	// has a route to take; it returns the partial.
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	compute := func(w *running, l *leader) (p *protocol.Part) {
		t.Helper()
		tick := time.NewTicker(timeout / 300)
		defer tick.Stop()
		eventually(t, "a part for "+l.id, func() bool {
			l.setup(w, 40, j, d.manifest)
			l.to(w, l.message(40, 0, list[0], allUnits(list[0].Units)))
			select {
			case p = <-l.parts:
			case <-tick.C:
			}
			return p != nil
		})
		return p
	}
	at := func(w *running) string { return w.link.session.Load().conn.ServerName() }

	w := c.start(Config{}) // nobody leads
	if at(w) != "b" {
		t.Fatalf("the worker is connected to %q", at(w))
	}
	open := c.close()
	l := c.unannounced("a", 5) // else the worker may be on its way when the orders come, and miss them
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, list[0], allUnits(list[0].Units)))
	busy := func() bool {
		return w.job(40) != nil && !w.quiet(func(j *batch.Job) bool { return j.Live() == 0 })
	}
	eventually(t, "work", busy)
	leads(l)
	eventually(t, "the move", func() bool { return at(w) == "a" })
	if !busy() {
		t.Error("the work has ended")
	}
	open()
	receive(t, "a part of what it was at", l.parts)
	if err := samePartial(compute(w, l).Partial, sums[0]); err != nil {
		t.Error(err)
	}
	compute(w, leads(c.unannounced("x", 6)))
	leads(c.unannounced("b", 7))
	eventually(t, "the move back", func() bool { return at(w) == "b" })
}

// TestFollowsTheMajority: the leader's coordinator is cut off from the others, and not
// from the worker. Nobody can reach the worker where it is connected, but a coordinator
// tells of a later leader when it is asked: there it goes with what it has in work.
func TestFollowsTheMajority(t *testing.T) {
	d := importData(t, dense())
	options := serverOptions
	options.Name = "a"
	c := newClusterOf(t, options)
	c.add(d)
	options.Name = "b"
	other := natstest.Server(t, options) // without a route between them
	c.set(func(i *protocol.Cluster) {
		i.NATS = []string{c.server.ClientURL(), other.ClientURL()}
		i.Coordinators = []protocol.MemberEntry{{ID: "a", NATS: c.server.ClientURL()}, {ID: "b", NATS: other.ClientURL()}}
		i.Leader, i.Epoch = "a", 5
	})
	l := c.lead("a", 5)
	w := c.start(Config{})
	j := newTestJob(t, d, 7, param.Values{"scaling": "standard"})
	list, sums := rounds(t, d, j, 1)
	l.setup(w, 40, j, d.manifest)
	l.to(w, l.message(40, 0, list[0], allUnits(list[0].Units)))
	receive(t, "a part", l.parts)

	c.server = other
	c.conn = c.dial()
	if _, err := bus.ServeBlobs(c.conn, c.subjects.Blobs(), "coordinators", c.open); err != nil {
		t.Fatal(err)
	}
	c.set(func(i *protocol.Cluster) { i.Leader, i.Epoch = "b", 9 })
	l = c.lead("b", 9)
	l.beat(w, "a beat at the other server", func(protocol.Beat) bool { return true })
	l.announce()
	l.beat(w, "a full beat", func(b protocol.Beat) bool { return b.Full })
	l.to(w, l.message(40, 0, list[0], allUnits(list[0].Units)))
	p := receive(t, "a part at the other server", l.parts)
	if err := samePartial(p.Partial, sums[0]); err != nil {
		t.Error(err)
	}
	if at := w.link.session.Load().conn.ServerName(); at != "b" {
		t.Errorf("it is connected to %q", at)
	}
}

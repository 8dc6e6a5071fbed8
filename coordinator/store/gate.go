package store

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/coppice-ldl/coppice/internal/rtt"
)

// gate is the transport of a node, with a say in elections: a node that cannot write its log
// does not stand for one.
type gate struct {
	*raft.NetworkTransport
	rpcs chan raft.RPC
	quit chan struct{}
	once sync.Once
	work sync.WaitGroup

	beating sync.RWMutex // held by heartbeats, which do not come through rpcs
	ended   bool         // none is handled any more

	notWritable atomic.Bool           // true if the log cannot be written
	fault       func(op string) error // of tests

	trips *rtt.Table    // round trips to peers, by id
	dials func() uint64 // how many connections were made; nil: none
}

func newGate(t *raft.NetworkTransport) *gate {
	g := &gate{trips: new(rtt.Table), NetworkTransport: t, rpcs: make(chan raft.RPC), quit: make(chan struct{})}
	g.work.Go(g.pass)
	return g
}

// stop ends the gate's goroutine and heartbeats that are under way, once Raft reads no
// more.
func (g *gate) stop() {
	g.once.Do(func() { close(g.quit) })
	g.work.Wait()
	g.beating.Lock()
	defer g.beating.Unlock()
	g.ended = true
}

// SetHeartbeatHandler implements raft.Transport. Raft handles heartbeats in the
// goroutines of connections, also after it has shut down, when VOTE may be closed.
func (g *gate) SetHeartbeatHandler(handle func(raft.RPC)) {
	g.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		g.beating.RLock()
		defer g.beating.RUnlock()
		if g.ended {
			rpc.Respond(nil, raft.ErrTransportShutdown)
			return
		}
		handle(rpc)
	})
}

// Consumer implements raft.Transport.
func (g *gate) Consumer() <-chan raft.RPC { return g.rpcs }

// pass hands on to Raft what peers ask, but for what it answers itself.
func (g *gate) pass() {
	in := g.NetworkTransport.Consumer()
	for {
		select {
		case rpc := <-in:
			if g.refuse(&rpc) {
				continue
			}
			select {
			case g.rpcs <- rpc:
			case <-g.quit:
				return
			}
		case <-g.quit:
			return
		}
	}
}

// errAbstains answers a call to stand for election.
var errAbstains = errors.New("store: this coordinator is not a candidate for leadership at the moment")

// refuse answers, in Raft's place, what would make the node stand.
func (g *gate) refuse(rpc *raft.RPC) bool {
	if _, ok := rpc.Command.(*raft.TimeoutNowRequest); !ok || !g.notWritable.Load() {
		return false
	}
	rpc.Respond(&raft.TimeoutNowResponse{}, errAbstains)
	return true
}

// TimeoutNow implements raft.Transport.
func (g *gate) TimeoutNow(id raft.ServerID, at raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if g.fault != nil {
		if err := g.fault("timeout-now"); err != nil {
			return err
		}
	}
	return g.NetworkTransport.TimeoutNow(id, at, args, resp)
}

// InstallSnapshot implements raft.Transport.
func (g *gate) InstallSnapshot(id raft.ServerID, at raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if g.fault != nil {
		data = &faultyReader{data, g.fault}
	}
	return g.NetworkTransport.InstallSnapshot(id, at, args, resp, data)
}

// faultyReader reads a snapshot on its way to a peer, for tests.
type faultyReader struct {
	io.Reader
	fault func(op string) error
}

func (r *faultyReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b[:min(len(b), 4096)]) // so that there are several
	if fault := r.fault("install"); fault != nil {
		return 0, fault
	}
	return n, err
}

// AppendEntries implements raft.Transport. Heartbeats, which have no entries, are
// answered at once: they tell the round trip.
func (g *gate) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (err error) {
	if len(args.Entries) == 0 {
		defer g.timed(id, g.begin(), &err)
	}
	return g.NetworkTransport.AppendEntries(id, at, args, resp)
}

// beginning is when an exchange began, and how many connections had been made.
type beginning struct {
	at    time.Time
	dials uint64
}

func (g *gate) begin() beginning {
	b := beginning{at: time.Now()}
	if g.dials != nil {
		b.dials = g.dials()
	}
	return b
}

// timed takes note of an exchange that was answered, over a connection that there was:
// another takes a round trip more.
func (g *gate) timed(id raft.ServerID, from beginning, err *error) {
	if took := time.Since(from.at); *err == nil && g.begin().dials == from.dials {
		g.trips.Add(parseServer(id, "").ID, took)
	}
}

// RequestVote implements raft.Transport. It tells no round trip: whoever votes writes that
// to its disk first.
func (g *gate) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if g.notWritable.Load() {
		return errAbstains
	}
	return g.NetworkTransport.RequestVote(id, at, args, resp)
}

// RequestPreVote implements raft.WithPreVote. Every election begins with it, so it tells the
// round trips where none is ever won.
func (g *gate) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) (err error) {
	if g.notWritable.Load() {
		return errAbstains
	}
	defer g.timed(id, g.begin(), &err)
	return g.NetworkTransport.RequestPreVote(id, at, args, resp)
}

package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/leadership"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker"
)

const (
	heartbeat  = 100 * time.Millisecond
	concurrent = 3
	slots      = 2
	// apart is the time between two starts, so that the timers of processes do not end
	// together.
	apart = 1234567 * time.Nanosecond
)

var subjects = protocol.Subjects{Cluster: "sim"}

// cluster is the processes: it starts, kills and freezes them.
type cluster struct {
	dir                   string
	net                   *network
	log                   *raftLog
	dice                  *dice
	out                   *output
	verdict               *verdict
	coordinators, workers []*process // fixed once the run begins
	spare                 *process   // a worker that joins late
	tasks                 sync.WaitGroup

	mu   sync.Mutex // guards over, and dir, lives and now of all processes
	over bool       // true if no process starts any more
}

// process is a coordinator or a worker: a place with a disk, in which one life follows
// another.
type process struct {
	name  string
	disk  *disk  // of a coordinator; nil: it is a worker
	dir   string // of a worker
	lives int
	now   *life // nil: the process is down
}

// life is a process from its start to its end. The mutex of the cluster guards view.
type life struct {
	host   *host
	view   *view // of a coordinator, once it has opened the log
	cancel context.CancelFunc
	done   chan struct{}
}

func (c *cluster) newWorker(name string) *process {
	return &process{name: name, dir: filepath.Join(c.dir, name+".0")}
}

// all lists the processes that run from the beginning, in the order in which they start.
func (c *cluster) all() []*process {
	return append(append([]*process{}, c.coordinators...), c.workers...)
}

// view returns the log as a coordinator sees it, or nil while it is down.
func (c *cluster) view(p *process) *view {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.now == nil {
		return nil
	}
	return p.now.view
}

// start begins a life of a process.
func (c *cluster) start(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.now != nil || c.over {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{host: newHost(p.name), cancel: cancel, done: make(chan struct{})}
	p.now = l
	p.lives++
	dir := p.dir
	c.tasks.Go(func() {
		defer close(l.done)
		var err error
		if p.disk == nil {
			err = c.work(ctx, l, dir)
		} else {
			err = c.coordinate(ctx, p, l)
		}
		if err != nil && l.host.alive() && ctx.Err() == nil {
			c.verdict.fail("process", "%s ended: %v", p.name, err)
		}
	})
}

// kill ends a life at once. What it has not synced is lost, and what it still does
// reaches nobody.
func (c *cluster) kill(p *process) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := p.now
	if l == nil {
		return
	}
	p.now = nil
	l.host.kill()
	c.net.sever(l.host)
	if l.view != nil {
		l.view.close()
	}
	var err error
	if p.disk != nil {
		err = p.disk.crash()
	} else {
		next := fmt.Sprintf("%s.%d", filepath.Join(c.dir, p.name), p.lives)
		if err = crashWorker(p.dir, next, c.dice); errors.Is(err, os.ErrNotExist) { // it had not made its folder yet
			err = nil
		}
		p.dir = next
	}
	if err != nil {
		c.verdict.fail("process", "the disk of %s: %v", p.name, err)
	}
	l.cancel()
}

// leave ends the life of a worker in order.
func (c *cluster) leave(p *process) {
	c.mu.Lock()
	l := p.now
	c.mu.Unlock()
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.now == l {
		p.now = nil
		l.host.kill()
	}
}

// freeze stops a process until thaw, which is nil if the process is down.
func (c *cluster) freeze(p *process) (thaw func()) {
	c.mu.Lock()
	l := p.now
	c.mu.Unlock()
	if l == nil {
		return nil
	}
	l.host.freeze()
	return l.host.thaw
}

// stop ends all processes for good.
func (c *cluster) stop() {
	c.mu.Lock()
	c.over = true
	var lives []*life
	for _, p := range append(c.all(), c.spare) {
		if p.now != nil {
			lives = append(lives, p.now)
		}
	}
	c.mu.Unlock()
	for _, l := range lives {
		l.host.thaw()
		l.host.kill()
		l.cancel()
	}
}

// raftLeader returns the coordinator that leads Raft, or the first one if none does.
func (c *cluster) raftLeader() *process {
	name := c.log.leaderName()
	for _, p := range c.coordinators {
		if p.name == name {
			return p
		}
	}
	return c.coordinators[0]
}

// work is the life of a worker. The HTTP of the coordinators is simulated: it tells who
// leads, as a coordinator knows.
func (c *cluster) work(ctx context.Context, l *life, dir string) error {
	clusters := func(context.Context) (list []*protocol.Cluster, err error) {
		if !l.host.pass() {
			return nil, errors.New("sim: killed")
		}
		for _, p := range c.coordinators {
			v := c.view(p)
			if v == nil || !v.host.running() {
				continue
			}
			st := v.State()
			list = append(list, &protocol.Cluster{
				ID: subjects.Cluster, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
				Heartbeat: int(heartbeat / time.Millisecond), NATS: []string{"sim"}, Epoch: st.Epoch(), Leader: st.Leader(),
			})
		}
		if len(list) == 0 {
			return nil, errors.New("sim: no coordinator answers")
		}
		return list, nil
	}
	return worker.Run(ctx, worker.Config{
		Dir: dir, ID: l.host.name, Slots: slots, Log: c.out.logger(l.host.name),
		Net: &worker.Net{
			Clusters: clusters,
			Connect:  func(_ context.Context, o bus.Options) (*bus.Conn, error) { return c.net.connect(l.host, o) },
		},
	})
}

// coordinate is the life of a coordinator. It starts the parts in the same order as
// package coordinator.
func (c *cluster) coordinate(ctx context.Context, p *process, l *life) error {
	m := metrics.NewCoordinator(metrics.Registry())
	log := c.out.logger(p.name)
	conn, err := c.connect(ctx, l.host, bus.Options{Name: p.name, Answers: subjects.Inbox(p.name),
		MayAnswer: subjects.MayAnswer, Traffic: m, Log: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	folder, err := p.disk.open(l.host)
	if err != nil {
		return err
	}
	b := &replica.Blobs{Self: p.name, Folder: folder, Conn: conn, Subjects: subjects, Log: log}
	var members []protocol.MemberEntry
	for _, other := range c.coordinators {
		if members = append(members, protocol.MemberEntry{ID: other.name, Version: version.String}); other != p {
			b.Peers = append(b.Peers, other.name)
		}
	}
	stop, err := b.Serve()
	if err != nil {
		return err
	}
	defer stop()
	v := c.log.open(l.host)
	defer v.close()
	c.mu.Lock()
	l.view = v
	c.mu.Unlock()
	if !l.host.alive() { // kill did not see the view
		return nil
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { v.follow(ctx) })
	lead(ctx, v, leadership.Config{
		ID: p.name, Heartbeat: heartbeat, Concurrent: concurrent, Store: v, Blobs: b,
		Conn: conn, Subjects: subjects, Members: func() []protocol.MemberEntry { return members }, Metrics: m, Log: log,
	})
	return nil
}

// connect connects a coordinator to NATS. While NATS is down it tries again after each
// heartbeat.
func (c *cluster) connect(ctx context.Context, h *host, o bus.Options) (*bus.Conn, error) {
	for {
		conn, err := c.net.connect(h, o)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.dead:
			return nil, err
		case <-time.After(heartbeat):
		}
	}
}

// lead runs the leaderships of a coordinator one after the other, as package coordinator
// does. A leadership that is lost has ended before the next one begins.
func lead(ctx context.Context, v *view, cfg leadership.Config) {
	end := func() {}
	defer func() { end() }()
	for {
		select {
		case <-ctx.Done():
			return
		case leads := <-v.leadership:
			end()
			end = func() {}
			if !leads {
				continue
			}
			term, cancel := context.WithCancel(ctx)
			done := make(chan struct{})
			go func() {
				defer close(done)
				leadership.Run(term, cfg)
			}()
			end = func() { cancel(); <-done }
		}
	}
}

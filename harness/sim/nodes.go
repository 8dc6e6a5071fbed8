package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/office"
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
)

var subjects = protocol.Subjects{Cluster: "sim"}

// process is a coordinator or a worker: a place, with a disk, in which one life
// follows another. The simulation's mutex guards now and dir.
type process struct {
	name   string
	worker bool
	disk   *disk  // of a coordinator
	dir    string // of a worker
	lives  int
	now    *life // nil: it is down
}

// life is a running process.
type life struct {
	host   *host
	view   *view // of a coordinator
	cancel context.CancelFunc
	done   chan struct{}
}

// view returns the log as a coordinator sees it, or nil while it is down.
func (s *Sim) view(p *process) *view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.now == nil {
		return nil
	}
	return p.now.view
}

// start begins a life of a process.
func (s *Sim) start(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.now != nil || s.over {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &life{host: newHost(p.name), cancel: cancel, done: make(chan struct{})}
	p.now = l
	p.lives++
	s.tasks.Go(func() {
		defer close(l.done)
		var err error
		if p.worker {
			err = s.work(ctx, l, p.dir)
		} else {
			err = s.coordinate(ctx, p, l)
		}
		if err != nil && l.host.alive() && ctx.Err() == nil {
			s.fail("process", "%s ended: %v", p.name, err)
		}
	})
}

// kill ends a life at once: what it has not synced is lost, and what it still
// does reaches nobody.
func (s *Sim) kill(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := p.now
	if l == nil {
		return
	}
	p.now = nil
	l.host.kill()
	s.net.sever(l.host)
	if l.view != nil {
		l.view.close()
	}
	if err := s.lose(p); err != nil {
		s.fail("process", "the disk of %s: %v", p.name, err)
	}
	l.cancel()
}

// lose has a process' disk lose what was not synced; mu is held.
func (s *Sim) lose(p *process) error {
	if !p.worker {
		return p.disk.crash()
	}
	next := fmt.Sprintf("%s.%d", filepath.Join(s.dir, p.name), p.lives)
	err := crashWorker(p.dir, next, s.dice)
	p.dir = next
	if errors.Is(err, os.ErrNotExist) { // it was killed before it made its folder
		return nil
	}
	return err
}

// leave ends a worker's life in order, and starts it again later.
func (s *Sim) leave(p *process) {
	s.mu.Lock()
	l := p.now
	s.mu.Unlock()
	if l == nil {
		return
	}
	l.cancel()
	<-l.done
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.now == l {
		p.now = nil
		l.host.kill()
	}
}

// work is a worker's life.
func (s *Sim) work(ctx context.Context, l *life, dir string) error {
	return worker.Run(ctx, worker.Config{
		Dir: dir, ID: l.host.name, Slots: slots, Log: s.logger(l.host.name),
		Net: &worker.Net{
			Clusters: func(context.Context) ([]*protocol.Cluster, error) { return s.clusters(l.host) },
			Connect:  func(_ context.Context, o bus.Options) (*bus.Conn, error) { return s.net.connect(l.host, o) },
		},
	})
}

// clusters is what the coordinators' HTTP tells a worker.
func (s *Sim) clusters(h *host) (list []*protocol.Cluster, err error) {
	if !h.pass() {
		return nil, errors.New("sim: killed")
	}
	for _, p := range s.coordinators {
		v := s.view(p)
		if v == nil || !v.host.runs() {
			continue
		}
		c := &protocol.Cluster{
			ID: subjects.Cluster, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
			Heartbeat: int(heartbeat / time.Millisecond), NATS: []string{"sim"},
		}
		st := v.State()
		c.Epoch, c.Leader = st.Epoch(), st.Leader()
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("sim: no coordinator answers")
	}
	return list, nil
}

// coordinate is a coordinator's life: see package coordinator, whose parts it
// starts in the same order.
func (s *Sim) coordinate(ctx context.Context, p *process, l *life) error {
	m := metrics.NewCoordinator(metrics.Registry())
	log := s.logger(l.host.name)
	conn, err := s.connect(ctx, l.host, bus.Options{Name: l.host.name, Traffic: m, Log: log})
	if err != nil {
		return err
	}
	defer conn.Close()
	folder, err := p.disk.open(l.host)
	if err != nil {
		return err
	}
	b := &replica.Blobs{Self: l.host.name, Folder: folder, Conn: conn, Subjects: subjects, Log: log}
	for _, other := range s.coordinators {
		if other != p {
			b.Peers = append(b.Peers, other.name)
		}
	}
	stop, err := b.Serve()
	if err != nil {
		return err
	}
	defer stop()
	v := s.log.open(l.host)
	defer v.close()
	s.mu.Lock()
	l.view = v
	s.mu.Unlock()
	if !l.host.alive() { // killed meanwhile
		return nil
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { v.follow(ctx) })
	s.lead(ctx, v, office.Config{
		ID: l.host.name, Heartbeat: heartbeat, Concurrent: concurrent, Store: v, Blobs: b,
		Conn: conn, Subjects: subjects, Members: s.members, Metrics: m, Log: log,
	})
	return nil
}

// members lists the coordinators.
func (s *Sim) members() []protocol.MemberEntry {
	var list []protocol.MemberEntry
	for _, p := range s.coordinators {
		list = append(list, protocol.MemberEntry{ID: p.name, Version: version.String})
	}
	return list
}

// connect connects a coordinator to NATS, which may be away.
func (s *Sim) connect(ctx context.Context, h *host, o bus.Options) (*bus.Conn, error) {
	for {
		c, err := s.net.connect(h, o)
		if err == nil {
			return c, nil
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

// lead runs leaderships as they come, as package coordinator does.
func (s *Sim) lead(ctx context.Context, v *view, cfg office.Config) {
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
				office.Run(term, cfg)
			}()
			end = func() { cancel(); <-done }
		}
	}
}

package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
)

// The pauses between two rounds of questions, and between two log lines about them.
const (
	leastPause = 10 * time.Millisecond
	mostPause  = 250 * time.Millisecond
	quietFor   = time.Second // a start of others that is a little later is not worth a line
	reportEach = 5 * time.Second
)

// Answer says how this node is before its log is open.
func (f *Folder) Answer() Answer {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := Answer{
		Phase: PhaseNew, Cluster: f.identity.Cluster, ID: f.identity.ID, Directory: f.identity.Directory, Founders: f.identity.Founders,
		Seeded: f.identity.Seeded, RaftAddr: f.config.selfAddr(), Peers: f.config.PeerList, Heartbeat: f.config.Heartbeat,
	}
	switch {
	case f.adopting:
		a.Phase, a.Cluster = PhaseOpening, ""
	case f.identity.settled():
		a.Phase = PhaseOpening
	case a.Cluster == "":
		a.Cluster = f.config.Cluster
	}
	return a
}

// Waits says what the node waits for, or nothing.
func (f *Folder) Waits() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.waits
}

// Decide returns once it is on the disk how the node begins: alone, with its peers, or as
// one that a leader adds. It asks the others by Config.Ask until that is clear or ctx is done.
func (f *Folder) Decide(ctx context.Context) error {
	if i := f.Identity(); i.settled() {
		return nil
	}
	c := &f.config
	self := f.Answer()
	if !c.replicated() {
		if self.Cluster != "" && !self.Seeded {
			return fmt.Errorf("store: folder %s: %w: the folder is empty, although this coordinator is a member of cluster %s; %s", f.path, ErrCorrupt, self.Cluster, aloneRemedy)
		}
		d := found(&self, nil, nil, self.Cluster)
		return f.Begin(d.cluster, d.founders)
	}
	began, told, pause := time.Now(), time.Time{}, leastPause
	for {
		replies := f.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d := decide(&self, replies)
		if done, err := f.settle(ctx, &d); done || err != nil {
			return err
		}
		if time.Since(began) >= quietFor && time.Since(told) >= reportEach {
			told = time.Now()
			c.Logger.Warn(f.Waits())
		}
		wait.For(ctx, pause)
		pause = min(2*pause, mostPause)
	}
}

// aloneRemedy says what helps a coordinator whose folder does not prove what it has done, and
// that has nobody to fetch it from.
const aloneRemedy = "a single coordinator cannot fetch lost data from others: restore a backup, or empty its whole folder to start again"

// ask asks the other peers at once.
func (f *Folder) ask(ctx context.Context) map[string]reply {
	ctx, cancel := context.WithTimeout(ctx, f.config.patience())
	defer cancel()
	var list []string
	for _, p := range f.config.Peers {
		if p.ID != f.config.ID {
			list = append(list, p.ID)
		}
	}
	answers := make([]reply, len(list))
	var asking sync.WaitGroup
	for i, id := range list {
		asking.Go(func() { answers[i].Answer, answers[i].err = f.config.Ask(ctx, id) })
	}
	asking.Wait()
	replies := make(map[string]reply)
	for i, id := range list {
		replies[id] = answers[i]
	}
	return replies
}

// settle acts on a decision and reports whether the node is settled.
func (f *Folder) settle(ctx context.Context, d *decision) (done bool, err error) {
	log := f.config.Logger
	switch {
	case d.cluster == "":
		f.mu.Lock()
		defer f.mu.Unlock()
		f.waits = f.describe(d.waits)
		return false, nil
	case len(d.founders) == 0:
		log.Info("the cluster of this coordinator is already running; the leader adds the coordinator, which votes once it has caught up", "cluster", d.cluster)
		return true, f.Join(d.cluster)
	case d.from != "" && !f.confirmed(ctx, d):
		return false, nil
	}
	log.Info("a new cluster starts", "cluster", d.cluster, "with", serverIDs(d.founders))
	return true, f.Begin(d.cluster, d.founders)
}

// confirmed asks the coordinator that decided once more, now that this node tells nobody that
// it is new. If it was emptied meanwhile it may have begun another cluster with this node.
func (f *Folder) confirmed(ctx context.Context, d *decision) bool {
	f.mu.Lock()
	f.adopting = true
	f.mu.Unlock()
	again, err := f.config.Ask(ctx, d.from)
	same := err == nil && again.Cluster == d.cluster && slices.Equal(again.Founders, d.founders)
	if !same {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.adopting = false
	}
	return same
}

// describe says what the node waits for, and what to do.
func (f *Folder) describe(waits []string) string {
	text := strings.Join(waits, "; ")
	return fmt.Sprintf("the folder is new; the cluster starts once all %d coordinators answer, each with a new folder and the same --peers: %s", len(f.config.Peers), text)
}

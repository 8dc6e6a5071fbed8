package coordinator

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/protocol"
)

// sighting is what a coordinator said of itself, and when.
type sighting struct {
	protocol.Self
	at  time.Time // zero: it has not answered yet
	who string    // that answers in its place; empty: nobody
}

// sightings are what the leader knows of the other coordinators, for people and
// metrics.
type sightings struct {
	mu sync.Mutex
	by map[store.Server]sighting
}

func (s *sightings) get(m store.Server) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[m]
}

// replace takes in those of one look. What is not in it is forgotten.
func (s *sightings) replace(by map[store.Server]sighting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.by = by
}

// keepSightings asks the other coordinators how they are, while this one leads,
// until ctx is done.
func (n *node) keepSightings(ctx context.Context) {
	tick := time.NewTicker(2 * n.cfg.timeouts.ObserveGauges)
	defer tick.Stop()
	for {
		n.sight(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sight asks once.
func (n *node) sight(ctx context.Context) {
	if n.leading.Load() == nil {
		n.seen.replace(nil)
		n.metrics.RaftLag.Reset()
		return
	}
	last, others := n.store.Stats().LastIndex, n.otherMembers()
	by := n.askAll(ctx, others)
	if n.leading.Load() == nil || ctx.Err() != nil {
		return
	}
	n.seen.replace(by)
	n.metrics.RaftLag.Reset()
	for m, s := range by {
		n.metrics.RaftLag.WithLabelValues(m.ID).Set(float64(behind(last, s.Last)))
	}
}

// behind is how many of the leader's entries a coordinator has not.
func behind(leader, last uint64) uint64 { return leader - min(leader, last) }

func (n *node) otherMembers() (list []store.Member) {
	for _, m := range n.store.Members() {
		if m.ID != n.cfg.ID {
			list = append(list, m)
		}
	}
	return list
}

// askAll asks coordinators at once. Of those that do not answer it has what they said
// before.
func (n *node) askAll(ctx context.Context, list []store.Member) map[store.Server]sighting {
	ctx, cancel := context.WithTimeout(ctx, n.membership.Patience)
	defer cancel()
	found := make([]sighting, len(list))
	var asking sync.WaitGroup
	for i, m := range list {
		asking.Go(func() {
			found[i] = n.seen.get(m.Server)
			at, ok := n.roster.find(m.ID)
			if !ok || at.HTTP == "" {
				return
			}
			s, err := askSelf(ctx, at.HTTP)
			found[i].who = ""
			switch {
			case err != nil:
			case s.ID != m.ID || s.Cluster != "" && s.Cluster != n.subjects.Cluster:
				found[i].who = fmt.Sprintf("the coordinator at %s is %s of another cluster, %s; this cluster is %s", at.HTTP, s.ID, s.Cluster, n.subjects.Cluster)
			case s.Directory == "":
				found[i].who = s.Problem // it starts, and does not know its folder yet
			case s.Directory != m.Directory:
				found[i].who = fmt.Sprintf("the coordinator's folder was emptied; the new folder (directory id %s) replaces the old one once it has the log and all blobs", s.Directory)
			default:
				found[i] = sighting{s, time.Now(), ""}
			}
		})
	}
	asking.Wait()
	by := make(map[store.Server]sighting, len(list))
	for i, m := range list {
		by[m.Server] = found[i]
	}
	return by
}

// seenMembers lists the coordinators as this leader sees them.
func (n *node) seenMembers(now time.Time) (list []protocol.Coordinator) {
	last := n.store.Stats().LastIndex
	for _, m := range n.store.Members() {
		c := protocol.Coordinator{MemberEntry: protocol.MemberEntry{ID: m.ID, Raft: m.RaftAddr}, Role: protocol.RoleNonvoter}
		if e, ok := n.roster.find(m.ID); ok {
			c.MemberEntry = e
		}
		if m.Voter {
			c.Role = protocol.RoleVoter
		}
		if m.ID == n.cfg.ID {
			c.Role, c.Host, c.Load, c.Problem = protocol.RoleLeader, machine.Name(), machine.Load(), n.problem()
		} else {
			n.seen.get(m.Server).describe(&c, last, now)
		}
		list = append(list, c)
	}
	return list
}

// describe fills in what a coordinator said.
func (s sighting) describe(c *protocol.Coordinator, last uint64, now time.Time) {
	c.Lag, c.LastSeen, c.Problem = behind(last, s.Last), -1, s.who
	if s.at.IsZero() {
		return
	}
	c.Host, c.Load, c.Version, c.Problem = s.Host, s.Load, s.Version, cmp.Or(s.who, s.Problem)
	c.LastSeen = max(0, now.Sub(s.at).Milliseconds())
}

package worker

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// leadership is what a worker knows of its leader. It decides nothing about orders: jobs knows the
// highest leader epoch.
type leadership struct {
	*env
	changed func() // is called after a change

	mu      sync.Mutex // guards what follows
	cluster string     // the id of the cluster that the jobs are of; empty: none
	epoch   uint64     // the highest leader epoch of an announcement, or of a leader that the session has moved to
	name    string     // the coordinator that leads; empty: none has announced itself under epoch
	heard   time.Time  // when the leader was heard last, or when the wait for it began
	vacant  bool       // true if it said that it does not lead any longer
	refused string     // why the leader does not use this worker; empty: it does
	twins   string     // the addresses of this worker and of another one with its id; empty: there is none
}

// hears takes an announcement of the highest epoch. It ignores the announcement if a later leader
// was heard meanwhile, in another session. isNew is true if the leader is new to this worker.
func (l *leadership) hears(m *protocol.Lead) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Epoch < l.epoch {
		return false
	}
	l.epoch = m.Epoch
	l.heard, l.vacant = time.Now(), m.Coordinator == ""
	switch {
	case l.vacant:
		l.log.Info("the leader has stepped down", "coordinator", l.name, "epoch", m.Epoch)
		l.name = ""
		l.changed()
	case l.name != m.Coordinator:
		l.name, isNew = m.Coordinator, true
		l.log.Info("the worker has a new leader", "coordinator", m.Coordinator, "epoch", m.Epoch)
		l.changed()
	}
	if reason := m.Refused[l.id]; reason != l.refused {
		l.refused = reason
		if reason != "" {
			l.log.Error("the leader refuses this worker", "reason", reason)
		}
	}
	if both := m.Twins[l.id]; both != l.twins {
		if l.twins = both; both != "" {
			l.log.Error("another worker has the same id; give one of them another --id, and a folder of its own", "addresses", both)
		}
	}
	return isNew
}

// expect makes the worker one of a cluster, and reports whether it was one of another. The wait for
// a leader of an epoch begins again; 0: of any. If the epoch is new, nobody has announced itself
// under it.
func (l *leadership) expect(cluster string, epoch uint64) (another bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	another = l.cluster != cluster
	if another {
		l.cluster, l.epoch, l.name, l.refused = cluster, 0, "", ""
	}
	if epoch > l.epoch {
		l.epoch, l.name = epoch, ""
	}
	l.heard, l.vacant = time.Now(), false
	return another
}

// silence returns for how long no leader was heard.
func (l *leadership) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard)
}

// trouble says why no orders come; empty: they do.
func (l *leadership) trouble(limits protocol.Timeouts) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch silence := time.Since(l.heard); {
	case silence > limits.LeaderLost:
		return fmt.Sprintf("the worker has not heard from a leader for %v", silence.Round(time.Second))
	case l.refused != "":
		return "the leader refuses this worker: " + l.refused
	case l.name == "":
		return "the worker has not heard from a leader yet"
	}
	return ""
}

// leaderState is what a worker decides by which leader to follow, and at which NATS server.
type leaderState struct {
	epoch  uint64 // the highest seen
	leader string // the coordinator that announced itself under it; empty: none has
	server string // the NATS server of the session; empty: it is not connected

	silent bool // true if the leader was not heard for too long, or said that it does not lead any longer
	lost   bool // true if it was not heard for so long that the cluster may be elsewhere

	tried    uint64 // the epoch of the session's latest attempt to move, or of its beginning
	mayRetry bool   // true if that is long enough ago to try again
}

// state returns what the worker decides by now.
func (l *leadership) state(s *session, epoch uint64) leaderState {
	server := s.conn.ServerName()
	l.mu.Lock()
	defer l.mu.Unlock()
	silence := time.Since(l.heard)
	return leaderState{
		epoch: epoch, leader: l.name, server: server,
		silent: l.vacant || silence >= s.limits.LeaderSilent, lost: silence >= s.limits.LeaderLost,
		tried: s.tried, mayRetry: !time.Now().Before(s.stayUntil),
	}
}

// decision is what a worker does with its session.
type decision int

const (
	stays      decision = iota
	moves               // to the NATS server of the leader that an answer names
	ends                // the cluster has its NATS elsewhere, or is another one
	startsOver          // it ends, and jobs and epochs are forgotten: the cluster began an empty log
)

// shouldAsk reports whether a worker should ask the coordinators who leads: it does not hear its
// leader, or it is connected to another server than the leader's. embedded is true if coordinators
// have NATS servers of their own.
func (s *leaderState) shouldAsk(embedded bool) bool {
	if s.silent {
		return true
	}
	return embedded && s.leader != "" && s.server != s.leader && s.mayMove(s.epoch)
}

// mayMove reports whether a session may move under an epoch. Unless mayRetry is true, the epoch
// must be higher than at the latest attempt. Otherwise a worker could go to and fro between two
// coordinators.
func (s *leaderState) mayMove(epoch uint64) bool { return s.mayRetry || epoch > s.tried }

// isEnough reports whether an answer is enough, whatever the others say: it names a later leader
// than all before, or the leader that is heard.
func (s *leaderState) isEnough(c *protocol.Cluster) bool {
	return c.Leader != "" && (c.Epoch > s.epoch || c.Epoch == s.epoch && !s.silent && c.Leader == s.leader)
}

// decide decides by the answers of coordinators, and returns the answer that decided. It is the one
// of the highest epoch, because orders of lower epochs do not count, from whatever server they
// come. Answers of another cluster count only if there are no others.
func (s *leaderState) decide(now *protocol.Cluster, answers []*protocol.Cluster) (decision, *protocol.Cluster) {
	// Another cluster may have taken over an address.
	own := slices.DeleteFunc(slices.Clone(answers), func(c *protocol.Cluster) bool { return c.ID != now.ID })
	if len(own) > 0 {
		answers = own
	}
	c := newest(answers)
	switch {
	case c == nil:
		return stays, nil
	case s.lost && c.ID != now.ID:
		return ends, c
	case s.lost && s.startedOver(answers):
		return startsOver, c
	case c.ID == now.ID && s.follows(c):
		return moves, c
	case s.lost && !slices.Equal(slices.Sorted(slices.Values(now.NATS)), slices.Sorted(slices.Values(c.NATS))):
		return ends, c
	}
	return stays, c
}

// follows reports whether the session should move to the server of the leader that an answer names.
func (s *leaderState) follows(c *protocol.Cluster) bool {
	embeds := func(m protocol.MemberEntry) bool { return m.ID == c.Leader && slices.Contains(c.NATS, m.NATS) }
	switch {
	case c.Leader == "" || c.Epoch < s.epoch || c.Leader == s.server || !slices.ContainsFunc(c.Coordinators, embeds):
		return false
	case c.Epoch == s.epoch && !s.silent && c.Leader != s.leader: // an epoch has one leader, which is heard
		return false
	}
	return s.mayMove(c.Epoch)
}

// startedOver reports whether a majority of the coordinators know only lower epochs than the
// highest one seen, and one of them hears a leader. Then they began an empty log at the same
// addresses. A minority may be cut off from the others, or may be starting.
func (s *leaderState) startedOver(answers []*protocol.Cluster) bool {
	leads, of := false, 1
	for _, c := range answers {
		if c.Epoch >= s.epoch {
			return false
		}
		leads, of = leads || c.Leader != "", max(of, len(c.Coordinators))
	}
	return leads && len(answers) > of/2
}

package worker

import (
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

// standing is what a worker goes by when it decides which leader to follow, and where.
type standing struct {
	epoch  uint64 // the highest seen
	leader string // who announced itself under it; empty: nobody has yet
	server string // the NATS server of the session; empty: it is not connected

	silent bool // the leader was not heard for too long, or said that it leads no more
	lost   bool // and not for so long that the cluster may be elsewhere

	tried  uint64 // the epoch under which the session was opened, or tried to move, last
	rested bool   // and that is long enough ago to try once more
}

// course is what a worker does next.
type course int

const (
	stays course = iota
	moves        // its session, to the NATS server of the leader that an answer names
	ends         // its session: the cluster has its NATS elsewhere, or is another
	anew         // the same, and forgets jobs and epochs: the cluster began an empty log
)

// doubts reports whether a worker should ask the coordinators who leads: it does not
// hear its leader, or is connected to another server than the leader's own. embedded:
// coordinators have NATS servers of their own.
func (s *standing) doubts(embedded bool) bool {
	if s.silent {
		return true
	}
	return embedded && s.leader != "" && s.server != s.leader && s.mayMove(s.epoch)
}

// mayMove reports whether a session may move under an epoch. Without a rest it does only
// where the epoch is higher than at the last move, so that a worker does not go to and
// fro between two coordinators.
func (s *standing) mayMove(epoch uint64) bool { return s.rested || epoch > s.tried }

// settles reports whether an answer is enough, whatever the others say: it names a later
// leader than any that was seen, or the one that is heard.
func (s *standing) settles(c *protocol.Cluster) bool {
	return c.Leader != "" && (c.Epoch > s.epoch || c.Epoch == s.epoch && !s.silent && c.Leader == s.leader)
}

// course decides by the answers of coordinators, and returns the answer that it goes
// by. Orders of an epoch below the highest are void, wherever they come from, so a
// session follows the answer of the highest one.
func (s *standing) course(now *protocol.Cluster, answers []*protocol.Cluster) (course, *protocol.Cluster) {
	answers = ofCluster(answers, now.ID)
	c := newest(answers)
	switch {
	case c == nil:
		return stays, nil
	case s.lost && c.ID != now.ID:
		return ends, c
	case s.lost && s.beganAnew(answers):
		return anew, c
	case c.ID == now.ID && s.follows(c):
		return moves, c
	case s.lost && moved(now, c):
		return ends, c
	}
	return stays, c
}

// ofCluster returns the answers of a cluster's own coordinators, where there are any:
// another cluster may stand at an address by now that one of them had.
func ofCluster(answers []*protocol.Cluster, id string) []*protocol.Cluster {
	var own []*protocol.Cluster
	for _, c := range answers {
		if c.ID == id {
			own = append(own, c)
		}
	}
	if len(own) == 0 {
		return answers
	}
	return own
}

// follows reports whether the session should move to the server of the leader that an
// answer names.
func (s *standing) follows(c *protocol.Cluster) bool {
	switch {
	case c.Leader == "" || c.Epoch < s.epoch || c.Leader == s.server || !embeds(c, c.Leader):
		return false
	case c.Epoch == s.epoch && !s.silent && c.Leader != s.leader: // who is heard of one epoch leads it
		return false
	}
	return s.mayMove(c.Epoch)
}

// beganAnew reports whether the coordinators, a majority of them, know of no epoch as
// high as the highest seen: behind the same addresses they began an empty log. A few that
// are cut off from the others, or start again, say nothing.
func (s *standing) beganAnew(answers []*protocol.Cluster) bool {
	leads, of := false, 1
	for _, c := range answers {
		if c.Epoch >= s.epoch {
			return false
		}
		leads, of = leads || c.Leader != "", max(of, len(c.Coordinators))
	}
	return leads && len(answers) > of/2
}

// standing returns what the worker goes by just now.
func (w *worker) standing(s *session) standing {
	server := s.conn.ServerName()
	w.mu.Lock()
	defer w.mu.Unlock()
	silence := time.Since(w.heard)
	return standing{
		epoch: w.epoch, leader: w.leader, server: server,
		silent: w.vacant || silence >= s.limits.LeaderSilent, lost: silence >= s.limits.LeaderLost,
		tried: s.tried, rested: !time.Now().Before(s.stay),
	}
}

package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-ldl/coppice/coordinator/dispatch"
	"github.com/coppice-ldl/coppice/coordinator/jobs"
	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/replica"
	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/blobs"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/machine"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// status describes this coordinator and its cluster for the API and the metrics. It has
// no state of its own.
type status struct {
	cfg     *settings
	book    *addressBook
	peers   *peers
	store   *store.Store
	nats    *messaging
	copies  *copies
	health  *health
	reports *reports
	leading func() *dispatch.Dispatcher // nil while this coordinator does not lead
}

// describeSelf returns what this coordinator says of itself.
func (st *status) describeSelf() protocol.Self {
	s := st.peers.answer(st.store.Answer())
	s.Applied = st.store.Stats().AppliedIndex
	s.Leader, _ = st.store.Leader()
	s.Condition = st.condition(st.copies.Look()) // now, so that it is about a state at least as recent as Applied
	return s
}

// condition returns how this coordinator is, which lacks these blobs.
func (st *status) condition(lacks replica.Shortage) protocol.Condition {
	c := protocol.Condition{Contact: -1, Missing: lacks.Count, Lost: lacks.Lost, MissingFor: lacks.Oldest.Seconds(),
		Host: machine.Name(), Load: machine.Load(), Problem: st.health.problem(), Warning: st.health.warning()}
	if contact := st.store.Stats().LastContact; contact >= 0 {
		c.Contact = contact.Milliseconds()
	}
	if free, size, err := blobs.Space(st.cfg.Dir); err == nil {
		c.DiskFree, c.DiskSize = free, size
	}
	return c
}

// cluster describes the cluster as this coordinator knows it.
func (st *status) cluster() protocol.Cluster {
	s := st.store.State()
	c := st.describe(s)
	if d := st.leading(); d != nil {
		c.Workers, c.Members = d.Workers(), st.coordinators()
		jobs.Explain(c.Workers, d.Idle(), s.Jobs(), st.jobWaits(s), d.WorkersOf)
	} else if c.Leader == st.cfg.ID {
		c.Leader = "" // elected, but the epoch has not begun
	}
	return c
}

// leader returns the leader that cluster names, without all else.
func (st *status) leader() string {
	leader, _ := st.store.Leader()
	if leader == st.cfg.ID && st.leading() == nil {
		return "" // elected, but the epoch has not begun
	}
	return leader
}

// local answers protocol.ClusterLocal. It names a leader only if Raft hears the leader
// of the epoch that it tells.
func (st *status) local() protocol.Cluster {
	s := st.store.State()
	c := st.describe(s)
	c.Workers, c.Leader = []protocol.Worker{}, ""
	if st.hears(s) {
		c.Leader = s.Leader()
	}
	if len(c.Coordinators) == 0 { // it started without a majority and has applied nothing
		c.Coordinators = st.book.known()
	}
	return c
}

// describe returns the part of cluster and local that both have.
func (st *status) describe(s *state.State) protocol.Cluster {
	c := protocol.Cluster{
		ID: st.peers.clusterID, Version: version.String, Protocol: protocol.Version, Numerics: round.Numerics,
		Epoch: s.Epoch(), Heartbeat: int(st.cfg.Heartbeat / time.Millisecond),
		Coordinators: s.Members(), NATS: st.nats.urls(), Quarantined: s.QuarantinedWorkers(), Problem: st.health.problem(),
		Warning: st.health.warning(), Insecure: st.cfg.exposed, PublicURL: st.cfg.public.String(),
	}
	c.Leader, _ = st.store.Leader()
	return c
}

// heard reports whether this coordinator hears the leader of the epoch that it knows.
func (st *status) heard() bool { return st.hears(st.store.State()) }

// hears reports whether Raft hears the leader of the epoch of s.
func (st *status) hears(s *state.State) bool {
	leader, _ := st.store.Leader()
	return leader != "" && leader == s.Leader() && (leader != st.cfg.ID || st.leading() != nil)
}

// coordinators lists the coordinators as this leader knows them.
func (st *status) coordinators() (list []protocol.Coordinator) {
	now, last := time.Now(), st.store.Stats().LastIndex
	for _, m := range st.store.Members() {
		c := protocol.Coordinator{MemberEntry: protocol.MemberEntry{ID: m.ID, Raft: m.RaftAddr}, Role: protocol.RoleNonvoter}
		if e, ok := st.book.find(m.ID); ok {
			c.MemberEntry = e
		}
		if m.Voter {
			c.Role = protocol.RoleVoter
		}
		if m.ID == st.cfg.ID {
			c.Role, c.Alive, c.Condition = protocol.RoleLeader, true, st.condition(st.copies.Shortage())
		} else {
			s := st.reports.get(m.Server)
			c.Lag, c.LastSeen, c.Condition = behind(last, s.Last), -1, protocol.Condition{Contact: -1}
			if !s.at.IsZero() {
				c.Version, c.Condition, c.LastSeen = s.Version, s.Condition, max(0, now.Sub(s.at).Milliseconds())
			}
			c.Alive, c.Problem = s.silent == "" && !s.at.IsZero(), cmp.Or(s.silent, c.Problem)
		}
		list = append(list, c)
	}
	return list
}

// leaderApplied returns the index up to which the leader has applied the log. It returns
// false if no leader is known, if it does not answer, or if its epoch has not begun.
func (st *status) leaderApplied(ctx context.Context) (index uint64, ok bool) {
	switch leader, _ := st.store.Leader(); leader {
	case "":
		return 0, false
	case st.cfg.ID:
		return st.store.State().Index(), st.leading() != nil // it is set once the entry of the epoch is applied
	default:
		return st.peers.applied(ctx, leader)
	}
}

// jobWaits tells what the jobs of a state wait for, by id. It is nil if this
// coordinator does not lead.
func (st *status) jobWaits(s *state.State) map[uint64]jobs.Wait {
	d := st.leading()
	if d == nil {
		return nil
	}
	f := &jobs.Facts{Concurrent: st.cfg.Concurrent, Start: st.startWorker(), Unrecorded: st.health.unrecorded(),
		Workers: d.Availability, Lost: st.copies.Unavailable}
	switch {
	case st.nats.conn.Connected():
	case st.nats.server == nil:
		f.NATS = "the leader is not connected to the NATS server of coppice coordinator --nats; start that server again"
	default:
		f.NATS = "the leader is not connected to its NATS server"
	}
	return jobs.Waits(s.Jobs(), f)
}

// startWorker is the command that starts a worker of this cluster.
func (st *status) startWorker() string {
	return protocol.StartWorker(protocol.JoinList(st.book.known()), st.security())
}

// security is the flags about TLS of a process of this cluster.
func (st *status) security() string { return protocol.SecurityFlags(st.cfg.TLS != nil, st.cfg.exposed) }

// ready returns why the coordinator cannot serve now, or nil.
func (st *status) ready() error {
	why := st.health.trouble()
	if id, _ := st.store.Leader(); id != "" {
		return why
	}
	if why != nil {
		return fmt.Errorf("the cluster has no leader; %w", why)
	}
	return errors.New("the cluster has no leader")
}

// readyText is what /readyz adds to ready: who leads, and whether there are workers; or,
// without a leader, which coordinators answer.
func (st *status) readyText(ctx context.Context, notReady error) string {
	leader, _ := st.store.Leader()
	text := "this coordinator leads"
	switch d := st.leading(); {
	case leader == "" && st.store.Stats().LastIndex == 0:
		text = "no leader has reached this coordinator"
	case leader == "":
		silent := st.peers.silent(ctx, st.store.Members())
		text = withoutLeader(len(silent)+1, silent)
	case leader != st.cfg.ID:
		text = leader + " leads; the /readyz of the leader says whether there are workers"
	case d == nil:
		text = "this coordinator is about to lead"
	case notReady == nil:
		text += "; " + workersLine(d.Availability(0), st.startWorker())
	}
	if warning := st.health.warning(); warning != "" {
		text += "; " + warning
	}
	return text
}

// workersLine says whether there are workers to use, and with which command to start one.
func workersLine(a dispatch.Availability, start string) string {
	others := len(a.Unreachable) + len(a.Quarantined) + len(a.Refused)
	switch {
	case a.Usable == 1:
		return "1 worker can be used"
	case a.Usable > 1:
		return fmt.Sprintf("%d workers can be used", a.Usable)
	case a.Unknown:
		return "no worker has reported yet"
	case others > 0:
		return fmt.Sprintf("none of %d workers can be used (coppice cluster tells why); start a worker: %s", others, start)
	}
	return protocol.NoWorker(start)
}

// withoutLeader says why there is no leader. silent has for each other voter why it
// does not answer, or "".
func withoutLeader(voters int, silent []string) string {
	var away []string
	for _, s := range silent {
		if s != "" {
			away = append(away, s)
		}
	}
	answer, need := voters-len(away), voters/2+1
	switch {
	case answer < need:
		return fmt.Sprintf("%d of %d coordinators answer, but %d are needed; start these again: %s", answer, voters, need,
			strings.Join(away, "; "))
	case len(away) > 0:
		return fmt.Sprintf("%d of %d coordinators answer, and an election is in progress; no answer from: %s", answer, voters,
			strings.Join(away, "; "))
	case voters == 1:
		return "this coordinator is about to lead"
	}
	return fmt.Sprintf("all %d coordinators answer, and an election is in progress", voters)
}

// behind returns how many entries of the leader's log a coordinator lacks.
func behind(leader, last uint64) uint64 { return leader - min(leader, last) }

// report is what a coordinator said of itself at a time.
type report struct {
	protocol.Self
	at     time.Time // zero if it has not answered yet
	silent string    // why it has not answered the last question, or ""
}

// reports asks the other coordinators how they are while this coordinator leads.
type reports struct {
	peers   *peers
	store   *store.Store
	lag     *prometheus.GaugeVec
	leading func() bool

	mu sync.Mutex
	// last has the reports of the current members. It is empty while this coordinator
	// does not lead. mu guards it.
	last map[store.Server]report
}

// get returns the last report of a coordinator.
func (s *reports) get(m store.Server) report {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[m]
}

// run asks until ctx is done.
func (s *reports) run(ctx context.Context) {
	for range wait.Every(ctx, 2*s.peers.cfg.timeouts.ObserveGauges) {
		last := s.store.Stats().LastIndex // before the questions, so that no coordinator seems to lack newer entries
		var found map[store.Server]report
		if s.leading() {
			found = s.look(ctx)
		}
		if !s.leading() {
			found = nil
		}
		s.mu.Lock()
		s.last = found
		s.mu.Unlock()
		s.lag.Reset()
		for m, one := range found {
			s.lag.WithLabelValues(m.ID).Set(float64(behind(last, one.Last)))
		}
	}
}

// look asks all other members at once. If one does not answer, its last report remains.
func (s *reports) look(ctx context.Context) map[store.Server]report {
	ctx, cancel := context.WithTimeout(ctx, s.peers.cfg.patience())
	defer cancel()
	others := slices.DeleteFunc(slices.Clone(s.store.Members()), func(m store.Member) bool {
		return m.ID == s.peers.cfg.ID
	})
	answers := make([]report, len(others))
	var asking sync.WaitGroup
	for i, m := range others {
		asking.Go(func() { answers[i] = s.ask(ctx, m) })
	}
	asking.Wait()
	found := make(map[store.Server]report, len(others))
	for i, m := range others {
		found[m.Server] = answers[i]
	}
	return found
}

// ask returns the new report of a member.
func (s *reports) ask(ctx context.Context, m store.Member) report {
	next := s.get(m.Server)
	at, ok := s.peers.book.find(m.ID)
	if !ok || at.HTTP == "" {
		return next
	}
	self, err := s.peers.cfg.asker.askSelf(ctx, at.HTTP)
	if err == nil {
		err = members.Other(&self, m, s.peers.clusterID, at.HTTP)
	}
	if peer, refused := errors.AsType[*certs.PeerError](err); refused {
		err = peer // without the URL
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		next.silent = "it gives no answer"
	case err != nil:
		next.silent = cause(err).Error()
	default:
		next = report{Self: self, at: time.Now()}
	}
	return next
}

const (
	membersEvery = time.Second // at most between two turns of membership
	// doubtAfter is how many heartbeats this coordinator hears no leader before it asks
	// the others whether it is still a member.
	doubtAfter = 20
)

// membership follows the list of members while a coordinator runs. On the leader it
// also gives new members their vote: see members.Service. Only its goroutine uses it.
type membership struct {
	*status
	service *members.Service
	joins   bool // true if the coordinator joined a cluster at this start

	written   memberFile // as the folder has it
	logged    bool       // true if the log says that the coordinator waits to be added
	certainAt time.Time  // when it last was sure to be a member
}

// run follows the list until ctx is done. It returns an error that wraps ErrRemoved or
// ErrDuplicate if this coordinator must end.
func (m *membership) run(ctx context.Context) error {
	for range wait.Every(ctx, min(membersEvery, 5*m.cfg.Heartbeat)) {
		m.write()
		m.nats.updateRoutes()
		if !m.logged && m.joins && m.store.Answer().Phase == store.PhaseJoining {
			m.logged = true
			m.cfg.Log.Info("this coordinator waits to be added", "command", fmt.Sprintf("coppice cluster add %s=%s", m.cfg.ID,
				m.book.self.HTTP))
		}
		m.service.Reconcile(ctx)
		if err := m.doubt(ctx); err != nil {
			return err
		}
	}
	return nil
}

// write writes MEMBERS if the list has changed or the file is missing.
func (m *membership) write() {
	next := m.book.current(m.store)
	_, missing := os.Stat(filepath.Join(m.cfg.Dir, membersName))
	if reflect.DeepEqual(next, m.written) && missing == nil {
		return
	}
	if err := next.write(m.cfg.Dir); err != nil {
		m.cfg.Log.Warn("the list of members could not be written", "error", err)
		return
	}
	m.written = next
}

// doubt asks the other coordinators, after some time without a leader, whether this one
// was removed or runs twice.
func (m *membership) doubt(ctx context.Context) error {
	after := doubtAfter * m.cfg.Heartbeat
	st := m.store.Stats()
	if st.LastIndex == 0 || st.Role == "Leader" || st.LastContact >= 0 && st.LastContact <= after {
		m.certainAt = time.Now()
		return nil
	}
	if time.Since(m.certainAt) < after {
		return nil
	}
	directory := m.store.Answer().Directory
	if err := m.peers.checkDuplicate(ctx, directory); err != nil {
		return err
	}
	reissue := ""
	if m.cfg.TLS != nil {
		reissue = ", issue another certificate with coppice certs node, since the removal has revoked its own,"
	}
	if by := m.peers.removedBy(ctx, directory, m.store.State().Epoch()); by != "" {
		return fmt.Errorf("%w: %s says that coordinator %s with this folder (directory id %s) is not a member: to add it "+
			"again, empty %s%s and start it with --join-cluster", ErrRemoved, by, m.cfg.ID, directory, m.cfg.Dir, reissue)
	}
	return nil
}

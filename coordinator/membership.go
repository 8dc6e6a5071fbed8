package coordinator

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/members"
	"github.com/coppice-ldl/coppice/coordinator/store"
)

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
	tick := time.NewTicker(min(membersEvery, 5*m.cfg.Heartbeat))
	defer tick.Stop()
	for {
		m.write()
		m.nats.updateRoutes()
		if !m.logged && m.joins && m.store.Answer().Phase == store.PhaseJoining {
			m.logged = true
			m.cfg.Log.Info("this coordinator waits to be added", "command", fmt.Sprintf("coppice cluster add %s=%s", m.cfg.ID, m.book.self.HTTP))
		}
		m.service.Reconcile(ctx)
		if err := m.doubt(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
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
		return fmt.Errorf("%w: %s says that coordinator %s with this folder (directory id %s) is not a member: to add it again, empty %s%s and start it with --join-cluster", ErrRemoved, by, m.cfg.ID, directory, m.cfg.Dir, reissue)
	}
	return nil
}

package members

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// openPause is the time between two questions to a coordinator that is starting.
	openPause = 20 * time.Millisecond
	// transferTries bounds the attempts of a transfer. An attempt may fail because of
	// entries that are written meanwhile.
	transferTries = 5
	transferPause = 50 * time.Millisecond
	// onTheirWay is for how many seconds blobs may be missing at a member that is to
	// lead.
	onTheirWay = 1
)

// Add makes a waiting coordinator a member without a vote; Reconcile gives it one. If
// it is a member at the same address already, Add changes nothing. The error wraps
// ErrRefused, or comes from Log.
func (s *Service) Add(ctx context.Context, r protocol.AddRequest) (protocol.Members, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return protocol.Members{}, err
	}
	defer end()
	now := s.List(ctx)
	if m := find(now.Members, r.ID); m != nil {
		if m.HTTP != r.HTTP {
			return now, refused("%s is already a member, at %s", r.ID, m.HTTP)
		}
		now.Warning = fmt.Sprintf("%s is already a member", r.ID)
		return now, nil
	}
	if err := checkAdd(now.Members, r); err != nil {
		return now, err
	}
	who, err := s.identify(ctx, r)
	if err != nil {
		return now, err
	}
	if err := checkAddresses(now.Members, &who); err != nil {
		return now, err
	}
	server := serverOf(&who)
	if err := s.reach(ctx, server, who.Routes); err != nil {
		return now, refused("%s: %v; start it with --address, the address that others reach, or with --raft and "+
			"--nats-routes, and open these ports", who.ID, err)
	}
	s.Logger.Info("a coordinator is added", "id", who.ID, "http", who.HTTP, "raft", who.Raft)
	if err := s.propose(ctx, protocol.EntryMember, who.MemberEntry); err != nil {
		return now, err
	}
	if err := s.Log.AddNonvoter(ctx, server); err != nil {
		// If it is certain that the coordinator is no member, its addresses are deleted
		// again. Otherwise Reconcile does so later.
		isMember := slices.ContainsFunc(s.Log.Members(), func(m store.Member) bool { return m.ID == who.ID })
		if !errors.Is(err, store.ErrAmbiguous) && s.Log.IsLeader() && !isMember {
			err = errors.Join(err, s.forget(ctx, who.ID))
		}
		return now, err
	}
	now = s.List(ctx)
	now.Warning = sizeWarning(len(voters(now.Members, "")) + 1)
	return now, nil
}

// serverOf returns a coordinator as a server of Raft.
func serverOf(who *protocol.Self) store.Server {
	return store.Server{ID: who.ID, Directory: who.Directory, RaftAddr: who.Raft}
}

// checkAdd refuses a request that the current members do not allow.
func checkAdd(list []protocol.Member, r protocol.AddRequest) error {
	if r.ID == "" || r.HTTP == "" {
		return fmt.Errorf("%w: adding a coordinator needs its id and its HTTP address", state.ErrInvalid)
	}
	if m := nonvoter(list, ""); m != nil {
		return refused("coordinator %s is still being added; wait until it votes, or remove it", m.ID)
	}
	if n := len(voters(list, "")); n >= MaxVoters {
		return refused("the cluster already has %d coordinators, the largest number is %d", n, MaxVoters)
	}
	for _, m := range list {
		for _, p := range placesOf(&m.MemberEntry) {
			if protocol.SamePlace(p.address, r.HTTP) {
				return refused("the address %s is taken by coordinator %s (%s)", r.HTTP, m.ID, p.what)
			}
		}
	}
	return nil
}

// place is an address at which others reach a part of a coordinator.
type place struct{ what, address string }

// placesOf lists the addresses of a coordinator. A coordinator without routes uses an
// external NATS.
func placesOf(m *protocol.MemberEntry) []place {
	list := []place{{"HTTP", m.HTTP}, {"Raft", m.Raft}}
	if m.Routes != "" {
		list = append(list, place{"NATS for clients", strings.TrimPrefix(m.NATS, "nats://")},
			place{"NATS for routes", m.Routes})
	}
	return list
}

// checkAddresses refuses a coordinator with an address that a member has.
func checkAddresses(list []protocol.Member, who *protocol.Self) error {
	for _, m := range list {
		for _, has := range placesOf(&m.MemberEntry) {
			for _, says := range placesOf(&who.MemberEntry) {
				if protocol.SamePlace(has.address, says.address) {
					return refused("%s has its %s at %s, but that address is already used for %s by coordinator %s: start it with "+
						"an --address whose four ports are free", who.ID, says.what, says.address, has.what, m.ID)
				}
			}
		}
	}
	return nil
}

// identify asks a new coordinator who it is, and refuses it if it cannot become a
// member of this cluster. If the coordinator is just starting, identify waits until its
// log is open, but not longer than Patience.
func (s *Service) identify(ctx context.Context, r protocol.AddRequest) (who protocol.Self, err error) {
	starting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	for {
		who, err = s.ask(starting, r.HTTP)
		if phase := store.Phase(who.Phase); err != nil || phase == store.PhaseJoining || phase == store.PhaseMember {
			break
		}
		if wait.For(starting, openPause); starting.Err() != nil {
			err = fmt.Errorf("it is still starting: %s", who.Problem)
			break
		}
	}
	if err != nil {
		return who, refused("no coordinator answers the leader at %s: %v; start the coordinator there first: coppice "+
			"coordinator --id %s --dir DIR --join-cluster %s --address %s%s",
			r.HTTP, err, r.ID, s.Self().HTTP, r.HTTP, s.Security())
	}
	if err := s.checkSuits(&who, r); err != nil {
		return who, err
	}
	if who.HTTP == r.HTTP {
		return who, nil
	}
	again, err := s.ask(ctx, who.HTTP)
	if err != nil || again.ID != who.ID || again.Cluster != who.Cluster {
		return who, refused("%s says that it is at %s, but the leader cannot reach it there; start it with --address "+
			"HOST:PORT, the address that others reach", r.ID, who.HTTP)
	}
	return who, nil
}

// checkSuits refuses a new coordinator with another cluster, version or setting than
// this one.
func (s *Service) checkSuits(who *protocol.Self, r protocol.AddRequest) error {
	self := s.Self()
	switch {
	case who.ID != r.ID:
		return refused("the coordinator at %s has the ID %s, not %s", r.HTTP, who.ID, r.ID)
	case who.Cluster != self.Cluster:
		return refused(
			"%s is a member of cluster %s, this cluster is %s: start it with an empty folder and --join-cluster %s", r.ID,
			who.Cluster, self.Cluster, self.HTTP)
	case who.Protocol != self.Protocol || who.Numerics != self.Numerics:
		return refused("%s (%s) has protocol version %d and arithmetic version %d; this cluster (%s) has %d and %d",
			r.ID, who.Version, who.Protocol, who.Numerics, self.Version, self.Protocol, self.Numerics)
	case who.Heartbeat != self.Heartbeat:
		return refused("%s has a heartbeat of %d ms, but this cluster has %d ms: start it with --heartbeat %dms", r.ID,
			who.Heartbeat, self.Heartbeat, self.Heartbeat)
	case who.External != self.External:
		return refused("%s uses the NATS server %q, but this cluster uses %q (empty: the NATS servers of the coordinators)",
			r.ID, who.External, self.External)
	case who.Last > 0:
		return refused("%s still has its log from an earlier membership: empty its folder and start it again with "+
			"--join-cluster %s", r.ID, self.HTTP)
	}
	return nil
}

// removeWithin bounds the removal of a member after its certificates are revoked.
const removeWithin = 30 * time.Second

// Remove removes a member, whether it runs or not, and revokes the certificates that the member has
// shown to this coordinator. It refuses if the remaining voters
// would have no majority that answers and has all blobs. If the member is this
// coordinator, the leader, Remove transfers the leadership; its error is then
// store.ErrNotLeader, and the caller asks the next leader.
func (s *Service) Remove(ctx context.Context, id string) (protocol.Members, error) {
	end, err := s.begin(ctx)
	if err != nil {
		return protocol.Members{}, err
	}
	defer end()
	now := s.List(ctx)
	m := find(now.Members, id)
	if m == nil {
		if _, known := s.Log.State().Member(id); known { // an earlier removal was interrupted
			return now, s.forget(ctx, id)
		}
		return now, notFound(id, now.Members)
	}
	left := voters(now.Members, id)
	if m.Role != protocol.RoleNonvoter || len(left) < len(voters(now.Members, "")) {
		if len(left) == 0 {
			return now, refused("%s is the only coordinator with a vote", id)
		}
		if m := nonvoter(now.Members, id); m != nil {
			return now, refused("coordinator %s is still being added; wait until it votes, or remove it first", m.ID)
		}
		if err := checkQuorum(left, "removing "+id); err != nil {
			return now, err
		}
	}
	if id == s.Self().ID {
		if err := s.transfer(ctx, successor(left)); err != nil {
			return now, err
		}
		return now, fmt.Errorf("%s transfers the leadership before it is removed: %w", id, &store.NotLeaderError{})
	}
	s.Logger.Info("a coordinator is removed", "id", id)
	// It may run, or somebody may have its certificate, so the certificate is revoked first: with it, a
	// process can connect to Raft and to NATS. If this leader fails in between, the caller asks again. The
	// request may come through the coordinator itself, which loses its connections now: the removal goes on.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer cancel()
	revoked, err := s.revoke(ctx, id)
	if err != nil {
		return now, err
	}
	for _, one := range s.Log.Members() {
		if one.ID != id {
			continue
		}
		if err := s.Log.Remove(ctx, one.Server); err != nil {
			return now, err
		}
	}
	if err := s.forget(ctx, id); err != nil {
		return now, err // Reconcile forgets it later
	}
	now = s.List(ctx)
	now.Warning, now.Revoked = sizeWarning(len(left)), revoked
	if s.Certificates != nil && len(s.Certificates(id)) == 0 {
		now.Warning = strings.TrimPrefix(now.Warning+"; "+
			fmt.Sprintf("%s has shown no certificate to this leader, so none was revoked: revoke its certificate with coppice "+
				"certs revoke", id), "; ")
	}
	return now, nil
}

func notFound(id string, list []protocol.Member) error {
	return fmt.Errorf("%w: there is no coordinator %q; the members are %s", state.ErrNotFound, id, names(list))
}

// Transfer transfers the leadership to a voter; "" means any voter. A transfer to this
// coordinator changes nothing. After an error this coordinator still leads.
func (s *Service) Transfer(ctx context.Context, to string) error {
	end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	now, self := s.List(ctx), s.Self().ID
	if to == self {
		return nil
	}
	if to == "" {
		others := voters(now.Members, self)
		if len(others) == 0 {
			return refused("%s is the only coordinator with a vote", self)
		}
		return s.transfer(ctx, successor(others))
	}
	m := find(now.Members, to)
	switch {
	case m == nil:
		return notFound(to, now.Members)
	case m.Role == protocol.RoleNonvoter:
		return refused("%s has no vote yet", to)
	case !m.Alive:
		return refused("%s does not answer: %s", to, m.Problem)
	case m.Missing > m.Lost && m.MissingFor >= onTheirWay:
		return refused("%s lacks %s: wait until it has fetched them (coppice cluster members)", to, blobsOf(m.Missing))
	}
	return s.transfer(ctx, to)
}

// transfer tries a few times to transfer the leadership. Each attempt is bounded: if
// Raft hangs in it, the store starts Raft again.
func (s *Service) transfer(ctx context.Context, to string) error {
	var err error
	for range transferTries {
		if err = s.Log.HandOver(ctx, to); err == nil || ctx.Err() != nil || !s.Log.IsLeader() {
			break
		}
		wait.For(ctx, transferPause)
	}
	if err != nil && ctx.Err() == nil && s.Log.IsLeader() {
		return refused("no other coordinator took over, so %s remains the leader: %v", s.Self().ID, err)
	}
	return err
}

// find returns the member with an id, or nil.
func find(list []protocol.Member, id string) *protocol.Member {
	for i := range list {
		if list[i].ID == id {
			return &list[i]
		}
	}
	return nil
}

// voters returns the members with a vote, except one.
func voters(list []protocol.Member, except string) (v []protocol.Member) {
	for _, m := range list {
		if m.Role != protocol.RoleNonvoter && m.ID != except {
			v = append(v, m)
		}
	}
	return v
}

// nonvoter returns a member that has no vote yet, except one, or nil.
func nonvoter(list []protocol.Member, except string) *protocol.Member {
	for i := range list {
		if list[i].Role == protocol.RoleNonvoter && list[i].ID != except {
			return &list[i]
		}
	}
	return nil
}

func names(list []protocol.Member) string {
	var ids []string
	for _, m := range list {
		ids = append(ids, m.ID)
	}
	return strings.Join(ids, ", ")
}

// checkQuorum refuses a change after which these voters would have no majority that
// answers and has all blobs.
func checkQuorum(left []protocol.Member, doing string) error {
	var silent, lacking []protocol.Member
	for _, m := range left {
		switch {
		case !m.Alive:
			silent = append(silent, m)
		case m.Missing > m.Lost: // a lost blob is lost with and without the change
			lacking = append(lacking, m)
		}
	}
	need := len(left)/2 + 1
	if len(left)-len(silent) < need {
		return refused("%s leaves the voters %s, but coordinator %s does not answer: nothing can be committed without a "+
			"quorum of %d; restart that coordinator, or remove it first",
			doing, names(left), names(silent), need)
	}
	if len(left)-len(silent)-len(lacking) < need {
		return refused("%s leaves the voters %s, but coordinator %s has not fetched %s yet: wait, and see coppice cluster "+
			"members",
			doing, names(left), names(lacking), blobsOf(lacking[0].Missing))
	}
	return nil
}

func blobsOf(n int) string {
	if n == 1 {
		return "1 blob"
	}
	return fmt.Sprintf("%d blobs", n)
}

// successor returns the voter that should lead next. If some voters lack blobs, it
// returns a voter that has all. Otherwise it returns "", and Raft takes the voter with
// the longest log.
func successor(others []protocol.Member) (id string) {
	lacking := false
	for _, m := range others {
		switch {
		case m.MissingFor >= onTheirWay:
			lacking = true
		case id == "" && m.Alive && m.Problem == "":
			id = m.ID
		}
	}
	if !lacking {
		return ""
	}
	return id
}

// sizeWarning says what is wrong with a number of voters, or returns "".
func sizeWarning(n int) string {
	switch {
	case n == 1:
		return "a single coordinator is left: if it fails, the cluster stops; the coordinator's disk has the only copy of " +
			"the data"
	case n == 2:
		return "the cluster stops if one of its 2 coordinators fails: add a third coordinator"
	case n%2 == 0:
		return fmt.Sprintf("a cluster of %d coordinators survives the loss of %d, as does a cluster of %d: add or remove a "+
			"coordinator", n, (n-1)/2, n-1)
	}
	return ""
}

// slack is how many entries a new coordinator may lack when it gets its vote: entries
// come all the time.
const slack = 64

// Reconcile does what is due for the members, if this coordinator leads and no change
// is in progress:
//   - if the folder of a coordinator was emptied, it adds the coordinator with its new directory id;
//   - it gives members that have caught up a vote, in place of the server that they replace;
//   - it deletes the addresses of coordinators that are not members.
func (s *Service) Reconcile(ctx context.Context) {
	if !s.Log.IsLeader() {
		return
	}
	// Usually nothing is due, and then no other coordinator is asked.
	due := len(s.former()) > 0 || slices.ContainsFunc(s.Log.Members(), func(m store.Member) bool {
		_, replaced := s.Log.Replaced(m)
		return replaced || !m.Voter
	})
	if !due || !s.changing.enter(ctx, 0) {
		return
	}
	defer s.changing.leave()
	s.replace(ctx)
	s.promote(ctx)
	for _, id := range s.former() {
		if err := s.forget(ctx, id); err != nil {
			s.Logger.Info("a removed coordinator could not be deleted from the list of members", "id", id, "error", err)
		}
	}
}

// former lists coordinators that are not members, but have addresses in the log: the
// leader that removed them ended before it deleted the addresses.
func (s *Service) former() (ids []string) {
	members := s.Log.Members()
	for _, e := range s.Log.State().Members() {
		if !slices.ContainsFunc(members, func(m store.Member) bool { return m.ID == e.ID }) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// replace adds, without a vote, the coordinators that answer with another folder than
// the log has. A member that runs answers with its own folder, so it is not replaced.
func (s *Service) replace(ctx context.Context) {
	list := s.Log.Members()
	for _, m := range list {
		next, ok := s.Log.Replaced(m)
		if !ok || slices.ContainsFunc(list, func(m store.Member) bool {
			return m.ID == next.ID && m.Directory == next.Directory
		}) {
			continue
		}
		at, _ := s.Find(m.ID)
		who, err := s.ask(ctx, at.HTTP)
		if err == nil {
			same := who
			same.Last = 0 // its log was sent to this very server
			err = s.checkSuits(&same, protocol.AddRequest{ID: m.ID, HTTP: at.HTTP})
		}
		if err == nil && who.Directory != next.Directory {
			continue // it was emptied again, and the next dial will find that
		}
		if err != nil {
			s.warn("a coordinator with a new folder cannot replace its old entry yet", "id", m.ID, "error", err)
			continue
		}
		s.Logger.Info("a coordinator with a new folder is catching up; then it replaces its old entry", "id", m.ID,
			"directory", who.Directory, "old", m.Directory)
		if err := s.Log.AddNonvoter(ctx, serverOf(&who)); err != nil {
			s.warn("a coordinator with a new folder could not be added", "id", m.ID, "error", err)
		}
	}
}

// promote gives the members that have caught up a vote. The server that such a member
// replaces is removed first: its disk is lost, so its vote counts for nothing.
func (s *Service) promote(ctx context.Context) {
	now := s.List(ctx)
	for _, m := range now.Members {
		if m.Role != protocol.RoleNonvoter {
			continue
		}
		server := store.Server{ID: m.ID, Directory: m.Directory, RaftAddr: m.Raft}
		if slices.ContainsFunc(now.Members, func(o protocol.Member) bool {
			return o.ID == m.ID && o.Directory != m.Directory && o.Alive
		}) {
			s.Logger.Info("a coordinator has its former folder again; its other folder is removed from the list of members",
				"id", m.ID, "directory", m.Directory)
			if err := s.Log.Remove(ctx, server); err != nil {
				s.warn("a folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			}
			continue
		}
		// It has caught up if it lacks at most a few entries, and no blob that another
		// coordinator has.
		if !m.Alive || m.Applied == 0 || m.Applied+slack < now.Applied || m.Missing != m.Lost {
			continue
		}
		rest := voters(now.Members, m.ID)
		err := checkQuorum(append(rest[:len(rest):len(rest)], m), "giving "+m.ID+" a vote")
		if err == nil && len(rest) < len(voters(now.Members, "")) {
			err = checkQuorum(rest, "removing the old entry of "+m.ID)
		}
		if err != nil {
			s.warn("a coordinator has caught up, but cannot get a vote yet", "id", m.ID, "reason", err)
			continue
		}
		if err := s.removeOthers(ctx, server); err != nil {
			s.warn("the old folder of a coordinator could not be removed from the list of members", "id", m.ID, "error", err)
			continue
		}
		if err := s.Log.Promote(ctx, server); err != nil {
			s.warn("a coordinator could not get a vote", "id", m.ID, "error", err)
			continue
		}
		s.Logger.Info("a coordinator has caught up and has a vote", "id", m.ID)
	}
}

// removeOthers removes the servers of a coordinator with other folders.
func (s *Service) removeOthers(ctx context.Context, server store.Server) error {
	for _, old := range s.Log.Members() {
		if old.ID == server.ID && old.Directory != server.Directory {
			if err := s.Log.Remove(ctx, old.Server); err != nil {
				return err
			}
		}
	}
	return nil
}

// warn logs a warning. It logs an equal one at most once a minute.
func (s *Service) warn(text string, args ...any) {
	said, now := fmt.Sprint(text, args), time.Now()
	if said == s.said && now.Sub(s.saidAt) < time.Minute {
		return
	}
	s.said, s.saidAt = said, now
	s.Logger.Warn(text, args...)
}

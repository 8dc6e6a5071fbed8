// Package outage explains why a cluster does not answer, from what each coordinator says about itself.
package outage

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/protocol"
)

// Outlook is what coordinators said about themselves, and what their answers mean together.
type Outlook struct {
	Leader   string   `json:"leader"`   // named by a quorum; empty if there is none
	Voters   int      `json:"voters"`   // as known to the coordinators that answer
	Answered int      `json:"answered"` // voters that answered
	Verdict  string   `json:"verdict"`
	Members  []Member `json:"members"`

	heard    bool   // true if a member answered, whether it votes or not
	away     string // the names of the members that did not answer
	unknown  string // the addresses that did not answer, and that no member has
	deaf     string // the names of the voters that answered and hear no leader, although a quorum names one
	troubled string // the problems of the members that answered
}

func (o *Outlook) majority() int { return o.Voters/2 + 1 }

// said describes the answers of all coordinators.
func (o *Outlook) said() string {
	var all []string
	for i := range o.Members {
		all = append(all, o.Members[i].says())
	}
	return strings.Join(all, "; ")
}

// headline says briefly what the answers mean together.
func (o *Outlook) headline() string {
	there := fmt.Sprintf("%d of %d", o.Answered, o.Voters)
	switch {
	case !o.heard:
		return "no coordinator answers"
	case o.Answered == 0:
		return "no leader yet: the coordinators that answer are still starting"
	case o.Leader != "" && !o.leaderAnswers():
		return fmt.Sprintf("%s of %s name %s as the leader, but %[3]s does not answer",
			units.Plural(o.Answered, "coordinator"), units.Count(o.Voters), o.Leader)
	case o.Leader != "" && o.deaf != "":
		return fmt.Sprintf("%s leads, and %s coordinators answer, but the leader does not reach %s", o.Leader, there, o.deaf)
	case o.Leader != "" && o.Answered == o.Voters:
		return o.Leader + " leads, and all coordinators answer"
	case o.Leader != "":
		return fmt.Sprintf("%s leads, and %s coordinators answer, which is a quorum", o.Leader, there)
	case o.Answered < o.majority() && o.away != "":
		return fmt.Sprintf("no quorum: %s coordinators answer and can vote, %d are needed", there, o.majority())
	case o.Answered < o.majority():
		return fmt.Sprintf("no leader yet: %s coordinators have started", there)
	}
	return fmt.Sprintf("no leader, though %s coordinators answer", there)
}

// advice says what helps.
func (o *Outlook) advice() string {
	switch {
	case !o.heard && len(o.Members) == 1:
		return "is the coordinator running, and is --server right?"
	case !o.heard:
		return "are the coordinators running, and is --server right?"
	case o.Answered == 0 && o.away != "":
		return "waiting: " + o.troubled + "; no answer from: " + o.away
	case o.Answered == 0:
		return "waiting: " + o.troubled
	case o.Leader != "" && !o.leaderAnswers():
		return "a new leader is elected within seconds if the others cannot reach it either; restart or remove: " + o.away
	case o.Leader != "" && o.away != "":
		return "restart or remove: " + o.away
	case o.Answered < o.majority() && o.away != "":
		return "restart: " + o.away + "; if their disks are lost: coppice restore"
	case o.deaf != "":
		return "coppice cluster members says why, such as a revoked certificate"
	case o.troubled != "":
		return "problems: " + o.troubled
	case o.Leader == "" && o.Answered >= o.majority():
		return "an election is in progress; if it does not end, the coordinators cannot reach each other's Raft ports"
	}
	return ""
}

// leaderAnswers reports whether the leader that a quorum names answers.
func (o *Outlook) leaderAnswers() bool {
	for _, s := range o.Members {
		if s.ID == o.Leader {
			return s.Answered
		}
	}
	return false
}

// problem is the error of a command that gets no answer from a cluster in this state.
func (o *Outlook) problem() string {
	if !o.heard {
		return fmt.Sprintf("%s at %s; %s", o.headline(), o.said(), o.advice())
	}
	return fmt.Sprintf("%s: %s; see: coppice cluster members --stale", o.headline(), o.said())
}

// Err returns an error if no coordinator answered.
func (o *Outlook) Err() error {
	if !o.heard {
		return fmt.Errorf("%w: %s", client.ErrUnavailable, o.said())
	}
	return nil
}

// Reason says why a request got no answer. err is the error of its last try.
func (o *Outlook) Reason(err error) string {
	if o.Leader == "" || err == nil {
		return o.problem()
	}
	return fmt.Sprintf("%v (%s)", err, o.said())
}

// Member is what one coordinator said.
type Member struct {
	ID       string `json:"id"`
	HTTP     string `json:"http"`
	Answered bool   `json:"answered"`
	Role     string `json:"role,omitempty"` // leader, voter, nonvoter, or the phase of a coordinator that starts
	Term     uint64 `json:"term,omitempty"`
	Applied  uint64 `json:"applied,omitempty"`
	Last     uint64 `json:"last,omitempty"` // log index
	Leader   string `json:"leader"`         // the leader that it names
	Contact  int64  `json:"last_contact_ms"`
	Missing  int    `json:"missing_blobs,omitempty"`
	Lost     int    `json:"lost_blobs,omitempty"`
	// MissingFor is the time in seconds since the first of the missing blobs is missing.
	MissingFor float64 `json:"missing_blobs_seconds,omitempty"`
	Version    string  `json:"version,omitempty"`
	Problem    string  `json:"problem,omitempty"`
}

// starts returns the phase of a coordinator that does not take part yet, or an empty text.
func (s *Member) starts() string {
	switch s.Role {
	case "", protocol.RoleLeader, protocol.RoleVoter, protocol.RoleNonvoter:
		return ""
	}
	return s.Role
}

// name returns the id and the address of a coordinator.
func (s *Member) name() string {
	if s.ID == "" {
		return s.HTTP
	}
	return fmt.Sprintf("%s (%s)", s.ID, s.HTTP)
}

// says describes the answer of a coordinator in a few words.
func (s *Member) says() string {
	var what string
	switch {
	case !s.Answered:
		return s.name() + ": " + s.Problem
	case s.starts() != "":
		return s.name() + " starts: " + cmp.Or(s.Problem, s.Role)
	case s.Role == protocol.RoleLeader:
		what = " leads"
	case s.Leader == "":
		what = " has no leader"
	default:
		what = " follows " + s.Leader
	}
	if s.Problem != "" {
		what += " (" + s.Problem + ")"
	}
	return s.name() + what
}

// Judge combines the answers of coordinators. It is a pure function.
func Judge(reports []client.Report) *Outlook {
	o := &Outlook{Voters: len(reports), Members: []Member{}}
	voters := votersOf(reports)
	if len(voters) > 0 {
		o.Voters = len(voters)
	}
	hears := make(map[string]int)
	var away, unknown, troubled []string
	for i := range reports {
		s := saidBy(&reports[i], voters)
		o.Members = append(o.Members, s)
		if !s.Answered && s.ID == "" && len(voters) > 0 {
			unknown = append(unknown, s.HTTP)
			continue
		}
		if !s.Answered {
			away = append(away, s.name())
			continue
		}
		o.heard = true
		if s.Problem != "" {
			troubled = append(troubled, s.name()+": "+s.Problem)
		}
		if votes(voters, s.ID) && s.starts() == "" {
			o.Answered++
			hears[s.Leader]++
		}
	}
	o.away, o.unknown, o.troubled = strings.Join(away, ", "), strings.Join(unknown, ", "), strings.Join(troubled, "; ")
	for leader, n := range hears {
		if leader != "" && n >= o.majority() {
			o.Leader = leader
		}
	}
	if o.Leader != "" && hears[""] > 0 {
		o.deaf = deafOf(o.Members, voters)
	}
	o.Verdict = o.headline()
	if advice := o.advice(); advice != "" {
		o.Verdict += "; " + advice
	}
	if o.unknown != "" {
		o.Verdict += "; no coordinator of the cluster has the address " + o.unknown +
			": leave it out of --server if its coordinator was removed"
	}
	return o
}

// deafOf returns the names of the voters that answered and hear no leader.
func deafOf(members []Member, voters []protocol.MemberEntry) string {
	var names []string
	for i := range members {
		if s := &members[i]; s.Answered && s.Leader == "" && s.starts() == "" && votes(voters, s.ID) {
			names = append(names, s.name())
		}
	}
	return strings.Join(names, ", ")
}

// votersOf returns the voters, as the coordinator that has applied most of the log knows them. It returns nil if none
// knows them.
func votersOf(reports []client.Report) (list []protocol.MemberEntry) {
	applied := uint64(0)
	for _, r := range reports {
		switch {
		case r.Self == nil || r.Self.Applied < applied && list != nil:
			continue
		case len(r.Self.Voters) > 0:
			list = r.Self.Voters
		case r.Local != nil && len(r.Local.Coordinators) > 0:
			list = r.Local.Coordinators
		default:
			continue
		}
		applied = r.Self.Applied
	}
	return list
}

// votes reports whether a coordinator is in a list of voters. In an empty list, all are.
func votes(voters []protocol.MemberEntry, id string) bool {
	for _, m := range voters {
		if m.ID == id {
			return true
		}
	}
	return len(voters) == 0
}

func saidBy(r *client.Report, voters []protocol.MemberEntry) Member {
	s := Member{ID: r.ID, HTTP: r.Address, Contact: -1}
	if r.Self == nil {
		s.Problem = strings.TrimPrefix(r.Err.Error(), r.Address+" is ") // another program answers there
		return s
	}
	s.Answered, s.Term, s.Applied, s.Last = true, r.Self.Term, r.Self.Applied, r.Self.Last
	s.Leader, s.Contact, s.Missing = r.Self.Leader, r.Self.Contact, r.Self.Missing
	s.Lost, s.MissingFor = r.Self.Lost, r.Self.MissingFor
	s.Version, s.Problem = r.Self.Version, r.Self.Problem
	switch {
	case r.Self.Phase != phaseMember:
		s.Role = r.Self.Phase
	case s.Leader == s.ID:
		s.Role = protocol.RoleLeader
	case votes(voters, s.ID):
		s.Role = protocol.RoleVoter
	default:
		s.Role = protocol.RoleNonvoter
	}
	return s
}

// phaseMember is the phase of a coordinator that takes part in the cluster.
const phaseMember = "member"

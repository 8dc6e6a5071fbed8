package page

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
)

// coordinatorLine is a coordinator as the list shows it.
type coordinatorLine struct {
	*protocol.Coordinator
	State, Detail string // a word for the style sheet, and more in a sentence
	Seen          string
	Disk          string
	MayLead       bool // true if the caller can make it the leader
}

// coordinatorsPage is what the list of coordinators shows.
type coordinatorsPage struct {
	Verdict      verdict
	Coordinators []coordinatorLine
	*protocol.Cluster
}

// coordinatorsView lists the coordinators as the leader sees them, or, without a leader, as this one knows them.
func coordinatorsView(v *visit) (*view, error) {
	c := new(protocol.Cluster)
	if err := v.get("/v1/cluster", nil, c); err != nil {
		return nil, err
	}
	p := coordinatorsPage{Verdict: survival(c), Cluster: c}
	if len(c.Members) == 0 {
		for _, m := range c.Coordinators {
			p.Coordinators = append(p.Coordinators, coordinatorLine{State: "unknown",
				Coordinator: &protocol.Coordinator{MemberEntry: m, LastSeen: -1}})
		}
	}
	may := v.may("POST /v1/transfer", "")
	for i := range c.Members {
		m := &c.Members[i]
		l := coordinatorLine{Coordinator: m, Seen: since(m.LastSeen), Disk: formatDisk(m.DiskFree, m.DiskSize),
			MayLead: may && m.Role == protocol.RoleVoter && m.Alive}
		if m.LastSeen < 0 && m.Problem != "" { // whatever the leader before this one knew
			l.Seen = fmt.Sprintf("not since %s leads", c.Leader)
		}
		l.State, l.Detail = coordinatorState(m)
		p.Coordinators = append(p.Coordinators, l)
	}
	return &view{Title: "Coordinators", Section: "coordinators", Template: "coordinators", Data: &p}, nil
}

// coordinatorState says how a coordinator is: in a word, and in a sentence if there is more to say.
func coordinatorState(m *protocol.Coordinator) (state, detail string) {
	switch {
	case !m.Alive && m.Problem == "":
		return "unknown", "The leader has not asked it yet."
	case !m.Alive:
		return "unreachable", m.Problem
	case m.Problem != "":
		return "problem", m.Problem
	case m.Missing > 0:
		return "incomplete", fmt.Sprintf("It fetches %s.", counted(m.Missing, "blob"))
	case m.Role == protocol.RoleNonvoter:
		return "joining", "It votes once it has caught up."
	case m.Warning != "":
		return "warning", m.Warning
	}
	return "alive", ""
}

// transferView asks whether a coordinator is to lead.
func transferView(v *visit) (*view, error) {
	var c protocol.Cluster
	if err := v.get("/v1/cluster", nil, &c); err != nil {
		return nil, err
	}
	id := v.PathValue("coordinator")
	at := slices.IndexFunc(c.Members, func(m protocol.Coordinator) bool { return m.ID == id })
	if at < 0 {
		return nil, &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("There is no coordinator %.80q.", id)}
	}
	data := struct {
		To     *protocol.Coordinator
		Leader string
		May    bool
	}{&c.Members[at], c.Leader, v.may("POST /v1/transfer", "")}
	return &view{Title: "Transfer the leadership", Section: "coordinators", Template: "transfer", Data: &data,
		Still: true}, nil
}

// transfer has another coordinator lead.
func transfer(v *visit) (to string, err error) {
	return "/coordinators", v.api.post(v.Context(), "/v1/transfer", nil,
		protocol.TransferRequest{To: v.PathValue("coordinator")}, nil)
}

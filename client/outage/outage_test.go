package outage

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/client"
	"github.com/coppice-ldl/coppice/protocol"
)

// three are the members of a cluster.
func three() []protocol.MemberEntry {
	return []protocol.MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b", HTTP: "b:1"}, {ID: "c", HTTP: "c:1"}}
}

// reports are of coordinators a, b and c: whom each hears ("-": nobody), with its problem
// after a colon, or "" of one that does not answer.
func reports(says ...string) (list []client.Report) {
	for i, text := range says {
		m := three()[i]
		r := client.Report{ID: m.ID, Address: m.HTTP, Err: errors.New("refused")}
		if leader, problem, _ := strings.Cut(text, ":"); text != "" {
			r.Err = nil
			r.Self = &protocol.Self{MemberEntry: m, Phase: phaseMember, Leader: strings.Trim(leader, "-"),
				Condition: protocol.Condition{Problem: problem}, Voters: three()}
		}
		list = append(list, r)
	}
	return list
}

func TestVerdicts(t *testing.T) {
	starting := reports("-", "", "-")
	for i := range starting {
		if starting[i].Self != nil {
			starting[i].Self.Phase, starting[i].Self.Voters, starting[i].Self.Problem = "new", nil, "it waits for others"
		}
	}
	removed := append(reports("a", "a", "a"), client.Report{ID: "d", Address: "d:1", Self: &protocol.Self{
		MemberEntry: protocol.MemberEntry{ID: "d", HTTP: "d:1"}, Phase: phaseMember, Leader: "a", Applied: 0,
	}})
	gone := append(reports("a", "a", "a"), client.Report{Address: "d:1", Err: errors.New("refused")})
	for _, test := range []struct {
		name     string
		reports  []client.Report
		leader   string
		answered int
		says     []string // by the verdict and by the error of a command
	}{
		{"well", reports("a", "a", "a"), "a", 3, []string{"a leads, and all coordinators answer"}},
		{"one away", reports("a", "a", ""), "a", 2, []string{"a leads, and 2 of 3 coordinators answer", "c (c:1)"}},
		{"a leader that is gone is not one", reports("", "a", "-"), "", 2, []string{"no leader, though 2 of 3"}},
		{"a leader that was frozen just now", reports("", "a", "a"), "a", 2,
			[]string{"2 coordinators of 3 name a as the leader, but a does not answer", "a (a:1)"}},
		{"an old leader beside a new one", reports("a", "b", "b"), "b", 3, []string{"b leads"}},
		{"no majority", reports("", "-", ""), "", 1, []string{"no quorum: 1 of 3", "2 are needed", "a (a:1)", "c (c:1)"}},
		{"a leader that does not know yet", reports("a", "", ""), "", 1, []string{"no quorum: 1 of 3"}},
		{"election", reports("-", "-", "-"), "", 3, []string{"no leader, though 3 of 3"}},
		{"full disks", reports("-:the disk is full", "-:the disk is full", ""), "", 2,
			[]string{"a (a:1)", "the disk is full"}},
		{"a problem", reports("a:not connected to NATS", "a", "a"), "a", 3, []string{"not connected to NATS"}},
		{"nobody", reports("", "", ""), "", 0, []string{"no coordinator answers", "--server"}},
		{"starting", starting, "", 0, []string{"no leader yet", "it waits for others", "no answer from: b (b:1)"}},
		{"a voter that the others refuse", reports("a", "a", "-:NATS is not connected"), "a", 3,
			[]string{"a leads, and 3 of 3 coordinators answer, but the leader does not reach c (c:1); coppice cluster members " +
				"says why"}},
		{"a removed coordinator", gone, "a", 3, []string{"a leads, and all coordinators answer; no coordinator of the " +
			"cluster has the address d:1: leave it out of --server"}},
		{"a nonvoter", removed, "a", 3, []string{"a leads, and all coordinators answer"}},
	} {
		o := Judge(test.reports)
		if o.Leader != test.leader || o.Answered != test.answered || o.Voters != 3 {
			t.Errorf("%s: leader %q, %d of %d", test.name, o.Leader, o.Answered, o.Voters)
		}
		for _, part := range test.says {
			if !strings.Contains(o.Verdict, part) {
				t.Errorf("%s: the verdict %q lacks %q", test.name, o.Verdict, part)
			}
		}
		for _, r := range test.reports { // the error of a command names each
			if text := o.problem(); !strings.Contains(text, r.Address) {
				t.Errorf("%s: %q does not name %s", test.name, text, r.ID)
			}
		}
	}
}

// Of two or four voters more than half are a majority.
func TestEvenMajorities(t *testing.T) {
	for voters, want := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3} {
		if o := (&Outlook{Voters: voters}); o.majority() != want {
			t.Errorf("of %d voters %d are a majority", voters, o.majority())
		}
	}
}

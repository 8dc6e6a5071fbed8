package clustercmd

import (
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/protocol"
)

// The cluster shows where everybody is, how busy, and when seen last.
func TestWriteCluster(t *testing.T) {
	member := func(id string) protocol.MemberEntry {
		return protocol.MemberEntry{ID: id, HTTP: "10.0.0." + id + ":7100", Version: "0.1.0"}
	}
	c := &protocol.Cluster{
		ID: "c", Leader: "1", Coordinators: []protocol.MemberEntry{member("1"), member("2"), member("3")},
		Members: []protocol.Coordinator{
			{MemberEntry: member("1"), Role: protocol.RoleLeader,
				Condition: protocol.Condition{Host: "alpha", Load: 1.5}},
			{MemberEntry: member("2"), Role: protocol.RoleVoter, LastSeen: 1500, Lag: 1234,
				Condition: protocol.Condition{Host: "beta", Problem: "the disk is full"}},
			{MemberEntry: member("3"), Role: protocol.RoleNonvoter, LastSeen: -1},
		},
		Workers: []protocol.Worker{
			{
				ID: "w1", State: "alive", Host: "gamma", Metrics: "10.0.0.4:9000", Address: "10.0.0.4:40312", Slots: 4, Busy: 3,
				Load: 3.25, Shards: 16,
				TaskSeconds: map[string]float64{"step": 0.00312, "leaf update": 9}, MainKind: "step", LastSeen: 42,
				Version: "0.1.0",
			},
			{ID: "w2", State: "alive", Host: "a\x1b[2Jb", Address: "10.0.0.5:40312",
				TaskSeconds: map[string]float64{"tree": 12.34}, MainKind: "tree", LastSeen: 70_000, Idle: "no job runs"},
			{ID: "w3", State: "alive", Idle: "job j: it lacks the memory"},
			{ID: "w4", State: "alive", Idle: "no job runs"},
		},
	}
	var b strings.Builder
	writeCluster(new(cli.App), &b, c, false)
	lines := make(map[string]string)
	for line := range strings.Lines(b.String()) {
		if f := strings.Fields(line); len(f) > 0 {
			lines[f[0]] = strings.Join(f, " ")
		}
	}
	for id, want := range map[string]string{
		"1":  "1 leader alpha 10.0.0.1:7100 1.50 0 now 0.1.0",
		"2":  "2 voter beta 10.0.0.2:7100 - 1,234 1.5 s 0.1.0 the disk is full",
		"3":  "3 nonvoter - 10.0.0.3:7100 - 0 never 0.1.0",
		"w1": "w1 alive gamma 10.0.0.4:9000 4 3 3.25 16 step 3.1 ms 42 ms 0.1.0",
		"w2": "w2 alive a\\x1b[2Jb 10.0.0.5:40312 0 0 - 0 tree 12.3 s 1m10s -",
	} {
		if lines[id] != want {
			t.Errorf("%s is shown as %q, want %q", id, lines[id], want)
		}
	}
	for _, want := range []string{"idle worker", "\nw2, w4       no job runs\n",
		"\nw3           job j: it lacks the memory\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%s", want, b.String())
		}
	}
	c.Members, c.Leader = nil, ""
	b.Reset()
	if writeCluster(new(cli.App), &b, c, false); !strings.Contains(b.String(), "10.0.0.3:7100") ||
		!strings.Contains(b.String(), "none at present") {
		t.Errorf("without a leader:\n%s", b.String())
	}
}

// A distrusted worker is shown with the reason.
func TestDistrustedIsShown(t *testing.T) {
	var b strings.Builder
	writeCluster(new(cli.App), &b, &protocol.Cluster{ID: "c",
		Quarantined: []protocol.Quarantined{{Worker: "w1", Reason: "unit 3 differs", Time: 1}}}, false)
	for _, part := range []string{"w1", "unit 3 differs", "coppice cluster trust", "none at present"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("the cluster lacks %q:\n%s", part, b.String())
		}
	}
}

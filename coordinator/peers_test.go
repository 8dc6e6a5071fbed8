package coordinator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

// Whom a coordinator believes that it is of its cluster, by what it knows itself.
func TestPeersAgree(t *testing.T) {
	for i, test := range []struct {
		certain bool
		phase   store.Phase
		cluster string
		want    string // in the error; empty: none
		name    string // of the cluster then
	}{
		{false, store.PhaseNew, "mine", "", "mine"},
		{false, store.PhaseMember, "mine", "", "mine"},
		{false, store.PhaseNew, "other", "the same --peers", "mine"},
		{false, store.PhaseBegun, "other", "the same --peers", "mine"},
		{false, store.PhaseMember, "other", "", "other"}, // restored, or moved
		{false, store.PhaseLost, "other", "of cluster other", "mine"},
		{true, store.PhaseMember, "other", "of cluster other", "mine"},
	} {
		p := newPeers(nil, "mine", test.certain)
		err := p.agree(test.phase, test.cluster)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%d: %v, want %q", i, err, test.want)
		}
		if got := p.name(); got != test.name {
			t.Errorf("%d: cluster %s, want %s", i, got, test.name)
		}
	}
}

// A coordinator is asked where others say that it is; one that answers under another
// name is not it.
func TestPeersAsk(t *testing.T) {
	self := protocol.Self{MemberEntry: protocol.MemberEntry{ID: "b"}, Cluster: "mine", Phase: "member", Term: 7, Last: 9, Leads: true}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(self) }))
	defer s.Close()
	address := s.Listener.Addr().String()
	self.Voters = []protocol.MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b", HTTP: address}}
	c := Config{ID: "a", Peers: []Peer{{"a", "here", 7100}}}
	p := newPeers(newRoster(&c, keptMembers{Members: []protocol.MemberEntry{{ID: "b", HTTP: "127.0.0.1:1"}, {ID: "c", HTTP: address}}}), "mine", true)
	if _, err := p.ask(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "b (127.0.0.1:1): ") {
		t.Errorf("%v", err)
	}
	if _, err := p.ask(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "there is coordinator b") {
		t.Errorf("%v", err)
	}
	if _, err := p.ask(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("%v", err)
	}
	p.told["b"] = address
	a, err := p.ask(t.Context(), "b")
	if err != nil || a.Phase != store.PhaseMember || a.Term != 7 || a.Last != 9 || !a.Leads || strings.Join(a.Voters, "") != "ab" {
		t.Errorf("%+v, %v", a, err)
	}
}

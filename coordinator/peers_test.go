package coordinator

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/harness/allocs"
	"github.com/coppice-ldl/coppice/protocol"
)

// FuzzSelfAnswer: what another coordinator says of itself and its cluster to one
// that joins is taken or refused, in proportion to its size.
func FuzzSelfAnswer(f *testing.F) {
	var body atomic.Pointer[[]byte]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(*body.Load()) }))
	f.Cleanup(s.Close)
	f.Add(
		[]byte(
			`{"id":"a","cluster":"c","protocol":2,"numerics":1,"heartbeat_ms":250,"coordinators":[{"id":"a","http":"h:1"}]}`))
	f.Add([]byte(`{"heartbeat_ms":9223372036854775807,"coordinators":[{},{},{}]}`))
	f.Add([]byte(`null`))
	c := &Config{ID: "b"}
	f.Fuzz(func(t *testing.T, b []byte) {
		body.Store(&b)
		allocs.AtMost(t, 256*len(b)+2<<20, "an answer", func() {
			j, err := newAsker(nil, slog.New(slog.DiscardHandler)).join(t.Context(), s.Listener.Addr().String())
			if err == nil {
				c.mayJoin("h:1", j)
			}
		})
	})
}

// TestPeersAsk: a coordinator is asked at the address that others gave. An answer under
// another name does not count.
func TestPeersAsk(t *testing.T) {
	self := protocol.Self{MemberEntry: protocol.MemberEntry{ID: "b"}, Cluster: "mine", Phase: "member", Term: 7, Last: 9,
		Directory: "1", Protocol: protocol.Version, Numerics: round.Numerics}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(self)
	}))
	defer s.Close()
	address := s.Listener.Addr().String()
	self.Voters = []protocol.MemberEntry{{ID: "a", HTTP: "a:1"}, {ID: "b", HTTP: address}}
	c := Config{ID: "a", Peers: []Peer{{"a", "here", 7100}}}
	p := newPeers(&settings{Config: c, asker: newAsker(nil, slog.New(slog.DiscardHandler))},
		newAddressBook(&c, memberFile{Members: []protocol.MemberEntry{{ID: "b", HTTP: "127.0.0.1:1"},
			{ID: "c", HTTP: address}}}))
	if _, err := p.ask(t.Context(), "b"); err == nil || !strings.Contains(err.Error(), "b (127.0.0.1:1): ") {
		t.Errorf("%v", err)
	}
	if _, err := p.ask(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "coordinator b answers") {
		t.Errorf("%v", err)
	}
	if _, err := p.ask(t.Context(), "x"); err == nil || !strings.Contains(err.Error(), "not known") {
		t.Errorf("%v", err)
	}
	p.addresses["b"] = address
	a, err := p.ask(t.Context(), "b")
	if err != nil || a.Phase != store.PhaseMember || a.Term != 7 || a.Last != 9 || a.Cluster != "mine" ||
		a.Directory != "1" || strings.Join(a.Voters, "") != "ab" {
		t.Errorf("%+v, %v", a, err)
	}
	self.Protocol++
	if _, err := p.askAt(t.Context(), "b", address); err == nil || !strings.Contains(err.Error(), "has protocol version") {
		t.Errorf("of another protocol: %v", err)
	}
}

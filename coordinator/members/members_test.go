package members

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coppice-ldl/coppice/coordinator/state"
	"github.com/coppice-ldl/coppice/coordinator/store"
	"github.com/coppice-ldl/coppice/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a log that is a list of members, and the coordinators that answer.
type fake struct {
	state   *state.State
	members []store.Member
	follows bool                      // it does not lead
	selves  map[string]*protocol.Self // by HTTP address
	hands   []string                  // the coordinators that HandOver was called with
	fails   error                     // of what follows
	refuses error                     // of AddNonvoter
	silent  error                     // of Reach
	moved   map[string]store.Server   // by directory: who answers instead
	strange string                    // what Stranger says of each member
}

func (f *fake) State() *state.State     { return f.state }
func (f *fake) Members() []store.Member { return f.members }
func (f *fake) IsLeader() bool          { return !f.follows }

func (f *fake) Propose(_ context.Context, entry []byte) (uint64, any, error) {
	if f.fails != nil {
		return 0, nil, f.fails
	}
	next, result := f.state.Apply(f.state.Index()+1, entry)
	f.state = next
	return next.Index(), result.Value, result.Err
}

func (f *fake) AddNonvoter(_ context.Context, m store.Server) error {
	if f.refuses != nil {
		return f.refuses
	}
	f.members = append(f.members, store.Member{Server: m})
	return nil
}

func (f *fake) Promote(_ context.Context, s store.Server) error {
	for i := range f.members {
		if f.members[i].Server == s {
			f.members[i].Voter = true
		}
	}
	return nil
}

func (f *fake) Remove(_ context.Context, s store.Server) error {
	for i := range f.members {
		if f.members[i].Server == s {
			f.members = append(f.members[:i:i], f.members[i+1:]...)
			return f.fails
		}
	}
	return errors.New("no member")
}

func (f *fake) Reach(context.Context, store.Server) error { return f.silent }

func (f *fake) Replaced(m store.Member) (store.Server, bool) {
	next, ok := f.moved[m.Directory]
	return next, ok
}

func (f *fake) Stranger(store.Member) string { return f.strange }

func (f *fake) HandOver(_ context.Context, to string) error {
	f.hands, f.follows = append(f.hands, to), true
	return nil
}

// at returns the HTTP address of a coordinator.
func at(id string) string { return id + ":1" }

// answers makes a coordinator answer.
func (f *fake) answers(id string) *protocol.Self {
	s := &protocol.Self{
		MemberEntry: protocol.MemberEntry{ID: id, HTTP: at(id), Raft: id + ":2"}, Cluster: "c", Leader: "a",
		Protocol: 1, Numerics: 1, Heartbeat: 100, Last: 100, Applied: 100, Phase: "member", Directory: id + "1",
	}
	f.selves[at(id)] = s
	return s
}

// newService returns the service of a, the leader of these voters, who all answer.
func newService(t *testing.T, voters ...string) (*Service, *fake) {
	f := &fake{state: state.New(), selves: make(map[string]*protocol.Self)}
	s := &Service{
		Log: f, Patience: time.Second, Logger: slog.New(slog.DiscardHandler),
		Self:     func() protocol.Self { return *f.selves[at("a")] },
		Security: func() string { return " --tls-dir CERTS" },
		Find:     func(id string) (protocol.MemberEntry, bool) { return f.state.Member(id) },
		Ask: func(_ context.Context, http string) (protocol.Self, error) {
			if who := f.selves[http]; who != nil {
				return *who, nil
			}
			return protocol.Self{}, errors.New("nobody is there")
		},
	}
	for _, id := range voters {
		who := f.answers(id)
		f.members = append(f.members, store.Member{Server: serverOf(who), Voter: true})
		if _, _, err := f.Propose(t.Context(), protocol.EncodeEntry(protocol.EntryMember, who.MemberEntry)); err != nil {
			t.Fatal(err)
		}
	}
	return s, f
}

func (f *fake) names() (text string) {
	for _, m := range f.members {
		text += m.ID
		if !m.Voter {
			text += "?"
		}
	}
	for _, m := range f.state.Members() {
		text += " " + m.ID
	}
	return text
}

func check(t *testing.T, what string, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrRefused) {
		t.Errorf("%s: %v", what, err)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %q lacks %q", what, err, p)
		}
	}
}

// A coordinator is added without a vote, gets it once it has caught up, and no other
// change is made meanwhile.
func TestAdd(t *testing.T) {
	ctx := t.Context()
	s, f := newService(t, "a", "b", "c")
	d := f.answers("d")
	d.Last, d.Applied = 0, 0
	now, err := s.Add(ctx, protocol.AddRequest{ID: "d", HTTP: at("d")})
	if err != nil || !strings.Contains(now.Warning, "4 coordinators") {
		t.Fatalf("%+v, %v", now, err)
	}
	if got := f.names(); got != "abcd? a b c d" {
		t.Fatal(got)
	}
	if now, err = s.Add(ctx, protocol.AddRequest{ID: "d", HTTP: at("d")}); err != nil ||
		!strings.Contains(now.Warning, "already") {
		t.Errorf("again: %+v, %v", now, err)
	}
	e := f.answers("e")
	e.Last = 0
	_, err = s.Add(ctx, protocol.AddRequest{ID: "e", HTTP: at("e")})
	check(t, "another meanwhile", err, "d is still being added")
	_, err = s.Remove(ctx, "b")
	check(t, "a removal meanwhile", err, "d is still being added")
	for _, step := range []struct {
		applied uint64
		missing int
		votes   bool
	}{{0, 0, false}, {30, 0, false}, {100, 2, false}, {90, 0, true}} {
		d.Applied, d.Missing = step.applied, step.missing
		s.Reconcile(ctx)
		if got := f.members[3].Voter; got != step.votes {
			t.Fatalf("with %d entries and %d blobs missing it votes: %v", step.applied, step.missing, got)
		}
	}
}

// What could not be added leaves no addresses behind.
func TestAddTakesBack(t *testing.T) {
	for refuses, want := range map[error]string{
		errors.New("raft: no"): "abc a b c",
		store.ErrAmbiguous:     "abc a b c d", // it may have been added
	} {
		s, f := newService(t, "a", "b", "c")
		f.answers("d").Last = 0
		f.refuses = refuses
		if _, err := s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")}); !errors.Is(err, refuses) {
			t.Errorf("%v, want %v", err, refuses)
		}
		if got := f.names(); got != want {
			t.Errorf("%v leaves %q, want %q", refuses, got, want)
		}
		s.Reconcile(t.Context())
		if got := f.names(); got != "abc a b c" {
			t.Errorf("%v: in the end there are %q", refuses, got)
		}
	}
}

// TestNoVoteWithoutMajority: a vote is not given if fewer than a majority would then
// have all blobs.
func TestNoVoteWithoutMajority(t *testing.T) {
	s, f := newService(t, "a", "b", "c")
	d := f.answers("d")
	f.members = append(f.members, store.Member{Server: store.Server{ID: "d", Directory: "d1", RaftAddr: "d:2"}})
	if _, _, err := f.Propose(t.Context(), protocol.EncodeEntry(protocol.EntryMember, d.MemberEntry)); err != nil {
		t.Fatal(err)
	}
	delete(f.selves, at("c"))
	f.selves[at("b")].Missing = 1
	s.Reconcile(t.Context())
	if f.members[3].Voter {
		t.Error("of four voters one is dead and one lacks a blob, and d has a vote")
	}
	f.selves[at("b")].Missing = 0
	s.Reconcile(t.Context())
	if !f.members[3].Voter {
		t.Error("three of four are well, and d has no vote")
	}
}

func TestAddRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fake, *protocol.Self)
		why    string
	}{
		"nobody there":    {func(f *fake, _ *protocol.Self) { delete(f.selves, at("d")) }, "--join-cluster a:1"},
		"another id":      {func(_ *fake, d *protocol.Self) { d.ID = "x" }, "the coordinator at d:1 has the ID x, not d"},
		"another cluster": {func(_ *fake, d *protocol.Self) { d.Cluster = "z" }, "cluster z"},
		"another protocol": {func(_ *fake, d *protocol.Self) {
			d.Protocol = 2
		}, "d () has protocol version 2 and arithmetic version 1; this cluster () has 1 and 1"},
		"another heartbeat": {func(_ *fake, d *protocol.Self) { d.Heartbeat = 200 }, "--heartbeat 100ms"},
		"another NATS":      {func(_ *fake, d *protocol.Self) { d.External = "nats://x" }, "nats://x"},
		"an earlier life":   {func(_ *fake, d *protocol.Self) { d.Last = 7 }, "empty its folder"},
		"Raft of b":         {func(_ *fake, d *protocol.Self) { d.Raft = "b:2" }, "its Raft at b:2"},
		"routes at Raft": {func(_ *fake, d *protocol.Self) {
			d.NATS, d.Routes = "nats://d:3", "B.:2"
		}, "d has its NATS for routes at B.:2, but that address is already used for Raft by coordinator b"},
		"lies of its place": {func(_ *fake, d *protocol.Self) { d.HTTP = "elsewhere:1" }, "--address"},
	} {
		s, f := newService(t, "a", "b", "c")
		d := f.answers("d")
		d.Last = 0
		test.change(f, d)
		_, err := s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")})
		check(t, name, err, test.why)
		if got := f.names(); got != "abc a b c" {
			t.Errorf("%s: %s", name, got)
		}
	}
	s, f := newService(t, "a", "b", "c", "e", "f", "g", "h")
	f.answers("d").Last = 0
	_, err := s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")})
	check(t, "too many", err, "the cluster already has 7 coordinators, the largest number is 7")
	_, err = s.Add(t.Context(), protocol.AddRequest{ID: "b", HTTP: at("d")})
	check(t, "an id twice", err, "b is already a member, at b:1")
	s, f = newService(t, "a", "b", "c")
	f.answers("d").Last = 0
	_, err = s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: "b:2"})
	check(t, "HTTP at Raft of b", err, "the address b:2 is taken by coordinator b (Raft)")
	if _, err = s.Add(t.Context(), protocol.AddRequest{ID: "d"}); !errors.Is(err, state.ErrInvalid) {
		t.Errorf("no address: %v", err)
	}
}

// A member that lacks blobs that another has is not handed the leadership, and what
// each member has lost stops no change.
func TestNoLeaderWithoutItsBlobs(t *testing.T) {
	s, f := newService(t, "a", "b", "c")
	b, c := f.selves[at("b")], f.selves[at("c")]
	b.Missing, b.MissingFor = 1, 2
	check(t, "to one that lacks a blob", s.Transfer(t.Context(), "b"), "b lacks 1 blob: wait")
	if err := s.Transfer(t.Context(), ""); err != nil || !slices.Equal(f.hands, []string{"c"}) {
		t.Errorf("to any: %v, %v", err, f.hands)
	}
	f.follows, f.hands = false, nil
	b.Missing, b.MissingFor = 1, 0.2 // it is on its way
	if err := s.Transfer(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	f.follows, f.hands = false, nil
	if err := s.Transfer(t.Context(), ""); err != nil || !slices.Equal(f.hands, []string{""}) {
		t.Errorf("to any: %v, %v", err, f.hands)
	}
	f.follows = false
	_, err := s.Remove(t.Context(), "c")
	check(t, "removing the only holder of a blob", err, "coordinator b has not fetched 1 blob yet:")
	for _, m := range []*protocol.Self{b, c} {
		m.Missing, m.Lost, m.MissingFor = 2, 2, 60
	}
	f.follows = false
	if err := s.Transfer(t.Context(), "c"); err != nil {
		t.Errorf("what is lost is not to be waited for: %v", err)
	}
	f.follows = false
	if _, err := s.Remove(t.Context(), "c"); err != nil {
		t.Errorf("what is lost is not to be waited for: %v", err)
	}
}

// TestRemoveKeepsAMajority: after any removal the remaining voters have a majority that
// answers and has all blobs.
func TestRemoveKeepsAMajority(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	for n := 1; n <= len(all); n++ {
		for dead := range 1 << n {
			if dead&1 != 0 { // a leads
				continue
			}
			for lacking := range 1 << n {
				if lacking&dead != 0 || lacking&1 != 0 {
					continue
				}
				removes(t, all[:n], dead, lacking)
			}
		}
	}
}

// removes tries to remove each follower of a cluster in which some coordinators do not
// answer and some lack blobs.
func removes(t *testing.T, ids []string, dead, lacking int) {
	t.Helper()
	for out := 1; out < len(ids); out++ {
		s, f := newService(t, ids...)
		sound := 0
		for i, id := range ids {
			switch {
			case dead>>i&1 != 0:
				delete(f.selves, at(id))
				continue
			case lacking>>i&1 != 0:
				f.selves[at(id)].Missing = 3
				continue
			}
			if i != out {
				sound++
			}
		}
		want := sound > (len(ids)-1)/2
		_, err := s.Remove(t.Context(), ids[out])
		if what := fmt.Sprintf("removing %s of %v, dead %b, lacking %b", ids[out], ids, dead, lacking); want && err != nil {
			t.Errorf("%s: %v", what, err)
		} else if !want {
			check(t, what, err, "leaves the voters")
		}
		if gone := len(f.members) < len(ids); gone != want {
			t.Errorf("%s is out: %v", ids[out], gone)
		}
	}
}

// The leader is removed by its successor, the last coordinator by nobody, and what a
// removal left to do is done later.
func TestRemove(t *testing.T) {
	ctx := t.Context()
	s, f := newService(t, "a", "b", "c")
	if _, err := s.Remove(ctx, "a"); !errors.Is(err, store.ErrNotLeader) || len(f.hands) != 1 || len(f.members) != 3 {
		t.Errorf("the leader: %v, %v, %s", err, f.hands, f.names())
	}
	f.follows = false
	if _, err := s.Remove(ctx, "z"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
	f.fails = store.ErrAmbiguous
	if _, err := s.Remove(ctx, "c"); !errors.Is(err, store.ErrAmbiguous) || f.names() != "ab a b c" {
		t.Errorf("%v: %s", err, f.names())
	}
	f.fails = nil
	s.Reconcile(ctx)
	if f.names() != "ab a b" {
		t.Errorf("left to do: %s", f.names())
	}
	if _, err := s.Remove(ctx, "b"); err != nil {
		t.Errorf("b: %v", err)
	}
	_, err := s.Remove(ctx, "a")
	check(t, "the last", err, "only coordinator")
}

func TestTransfer(t *testing.T) {
	ctx := t.Context()
	s, f := newService(t, "a", "b", "c")
	if err := s.Transfer(ctx, "a"); err != nil || f.hands != nil {
		t.Errorf("to itself: %v, %v", err, f.hands)
	}
	if err := s.Transfer(ctx, "z"); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("to nobody: %v", err)
	}
	delete(f.selves, at("b"))
	check(t, "to the dead", s.Transfer(ctx, "b"), "does not answer")
	f.members = append(f.members, store.Member{Server: store.Server{ID: "d", Directory: "d1", RaftAddr: "d:2"}})
	check(t, "to a nonvoter", s.Transfer(ctx, "d"), "d has no vote yet")
	if err := s.Transfer(ctx, "c"); err != nil || strings.Join(f.hands, "") != "c" {
		t.Errorf("to c: %v, %v", err, f.hands)
	}
	alone, _ := newService(t, "a")
	check(t, "alone", alone.Transfer(ctx, ""), "only coordinator")
}

// One change at a time.
func TestOneChange(t *testing.T) {
	s, _ := newService(t, "a", "b", "c")
	s.Patience = time.Millisecond
	end, err := s.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Remove(t.Context(), "b")
	check(t, "a second change", err, "in progress")
	s.Patience = time.Minute
	done := make(chan error)
	go func() {
		_, err := s.Remove(t.Context(), "b")
		done <- err
	}()
	end()
	if err := <-done; err != nil {
		t.Errorf("a change that waited: %v", err)
	}
}

// TestEmptiedFolderIsReplaced: a coordinator with an emptied folder is another server.
// It is added without a vote, and replaces the old server once it has caught up.
func TestEmptiedFolderIsReplaced(t *testing.T) {
	ctx := t.Context()
	s, f := newService(t, "a", "b", "c")
	c := f.selves[at("c")]
	old := c.Directory
	c.Directory, c.Phase, c.Last, c.Applied = "c2", "joining", 0, 0
	if m := find(s.List(ctx).Members, "c"); m.Alive || !strings.Contains(m.Problem, "emptied") ||
		!strings.Contains(m.Problem, "c2") {
		t.Errorf("%+v", m)
	}
	f.moved = map[string]store.Server{old: {ID: "c", Directory: "c2"}}
	for range 2 {
		s.Reconcile(ctx)
		if got := f.names(); got != "abcc? a b c" {
			t.Fatal(got)
		}
	}
	c.Phase, c.Last, c.Applied, c.Missing = "member", 100, 100, 3
	s.Reconcile(ctx)
	if got := f.names(); got != "abcc? a b c" {
		t.Fatalf("it lacks blobs: %s", got)
	}
	c.Missing = 0
	delete(f.selves, at("b"))
	s.Reconcile(ctx)
	if got := f.names(); got != "abcc? a b c" {
		t.Fatalf("without the old folder and b no majority is left: %s", got)
	}
	f.answers("b")
	s.Reconcile(ctx)
	if got := f.names(); got != "abc a b c" || f.members[2].Directory != "c2" {
		t.Fatalf("%s with %s", got, f.members[2].Directory)
	}

	c.Directory = old // which is the same server as before, and catches up again
	f.moved = map[string]store.Server{"c2": {ID: "c", Directory: old}}
	s.Reconcile(ctx)
	if got := f.names(); got != "abc a b c" || f.members[2].Directory != old {
		t.Errorf("an old folder came back: %s with %s", got, f.members[2].Directory)
	}
}

// What cannot be reached is told when a coordinator is added, and afterwards.
func TestAddTellsThePort(t *testing.T) {
	s, f := newService(t, "a", "b", "c")
	d := f.answers("d")
	d.Last, d.Applied, d.Phase = 0, 0, "joining"
	f.silent = errors.New("connection refused")
	_, err := s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")})
	check(t, "Raft", err, "d: the leader cannot reach the coordinator's Raft address d:2: connection refused",
		"connection refused", "--raft")
	f.silent = nil
	d.Routes = "127.0.0.1:1"
	_, err = s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")})
	check(t, "routes", err, "d: the leader cannot reach the coordinator's address for NATS routes, 127.0.0.1:1: dial "+
		"tcp 127.0.0.1:1: connect", "--nats-routes")
	d.Routes = ""
	if _, err := s.Add(t.Context(), protocol.AddRequest{ID: "d", HTTP: at("d")}); err != nil {
		t.Fatal(err)
	}
	f.silent = errors.New("connection refused")
	if m := find(s.List(t.Context()).Members, "d"); !strings.Contains(m.Problem, "Raft address d:2: connection refused") {
		t.Errorf("%+v", m)
	}
	d.Heartbeat = 200
	f.strange = "another cluster answers"
	delete(f.selves, at("b"))
	list := s.List(t.Context()).Members
	if m := find(list, "d"); !strings.Contains(m.Warning, "200 ms") {
		t.Errorf("%+v", m)
	}
	if m := find(list, "b"); !strings.Contains(m.Problem, "another cluster answers") {
		t.Errorf("%+v", m)
	}
}

// A folder that was added and is replaced by the former one before it votes is removed:
// the volume of the former one was mounted late.
func TestFormerFolderComesBack(t *testing.T) {
	s, f := newService(t, "a", "b", "c")
	f.members = append(f.members, store.Member{Server: store.Server{ID: "c", Directory: "c2", RaftAddr: "c:2"}})
	s.Reconcile(t.Context())
	if got := f.names(); got != "abc a b c" || f.members[2].Directory != "c1" {
		t.Errorf("%s with %s", got, f.members[2].Directory)
	}
}

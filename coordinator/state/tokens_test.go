package state

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-ldl/coppice/protocol"
)

// tokenEntry returns an entry of token n with the hash digest(c).
func tokenEntry(n int, c byte) *protocol.TokenPutEntry {
	return &protocol.TokenPutEntry{
		TokenRequest: protocol.TokenRequest{ID: fmt.Sprintf("%016x", n), SHA256: digest(c), Role: "submit", Owner: "ana",
			Quota: 3, Expires: 50}, Time: 10,
	}
}

// drawToken draws one of a few tokens. Each has one of two hashes.
func drawToken(t *rapid.T, index uint64) *protocol.TokenPutEntry {
	e := tokenEntry(rapid.IntRange(0, 2).Draw(t, "token"), rapid.SampledFrom([]byte("ab")).Draw(t, "hash"))
	e.Time = int64(index)
	return e
}

// checkTokens checks that a token never changes, except that it is revoked once, and that no entry but
// a revocation does that.
func checkTokens(t *rapid.T, before, after *State, body any) {
	for _, old := range before.tokens {
		now := after.Token(old.ID)
		if now == nil {
			t.Fatalf("%+v forgets token %s, though there is room", body, old.ID)
		}
		same := *now
		if same.Revoked = old.Revoked; same != *old {
			t.Fatalf("%+v changes the token %+v to %+v", body, old, now)
		}
		e, revokes := body.(*protocol.TokenRevokeEntry)
		if now.Revoked != old.Revoked && (!revokes || e.ID != old.ID || old.Revoked != 0) {
			t.Fatalf("%+v changes the revocation of %+v to %d", body, old, now.Revoked)
		}
	}
}

// TestTokens: the same token again is harmless, also after its revocation. Another token with the id
// is refused.
func TestTokens(t *testing.T) {
	m := newMachine(t)
	made := m.do(protocol.EntryTokenPut, tokenEntry(1, 'a')).(*Token)
	if made.Hash != digest('a') || made.Token != (protocol.Token{ID: "0000000000000001", Owner: "ana", Role: "submit",
		Quota: 3, Created: 10, Expires: 50}) {
		t.Errorf("%+v", made)
	}
	later := tokenEntry(1, 'a')
	later.Time = 99
	if again := m.do(protocol.EntryTokenPut, later); again != made {
		t.Errorf("the same token again: %+v", again)
	}
	for what, change := range map[string]func(*protocol.TokenPutEntry){
		"another secret": func(e *protocol.TokenPutEntry) { e.SHA256 = digest('b') },
		"another role":   func(e *protocol.TokenPutEntry) { e.Role = "admin" },
		"another owner":  func(e *protocol.TokenPutEntry) { e.Owner = "eve" },
		"another quota":  func(e *protocol.TokenPutEntry) { e.Quota = 0 },
		"another end":    func(e *protocol.TokenPutEntry) { e.Expires = 0 },
	} {
		e := tokenEntry(1, 'a')
		change(e)
		if err := m.refused(protocol.EntryTokenPut, e); !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", what, err)
		}
	}
	revoke := &protocol.TokenRevokeEntry{ID: made.ID, Time: 20}
	if got := m.do(protocol.EntryTokenRevoke, revoke).(*Token); got.Revoked != 20 || made.Revoked != 0 {
		t.Errorf("%+v", got)
	}
	revoke.Time = 30
	if got := m.do(protocol.EntryTokenRevoke, revoke).(*Token); got.Revoked != 20 {
		t.Errorf("revoked twice: %+v", got)
	}
	if got := m.do(protocol.EntryTokenPut, tokenEntry(1, 'a')).(*Token); got.Revoked != 20 {
		t.Errorf("a repeated entry makes a revoked token valid again: %+v", got)
	}
	if err := m.refused(protocol.EntryTokenRevoke, &protocol.TokenRevokeEntry{ID: "0000000000000002"}); !errors.Is(err,
		ErrNotFound) {
		t.Error(err)
	}
	if s := m.s.WithoutTokens(); len(s.Tokens()) != 0 || len(m.s.Tokens()) != 1 {
		t.Errorf("without tokens: %v; %v", s.Tokens(), m.s.Tokens())
	}
}

// TestWrongTokens: a token that is not valid is refused with the reason, also in a snapshot.
func TestWrongTokens(t *testing.T) {
	for want, change := range map[string]func(*protocol.TokenPutEntry){
		"16 hexadecimal digits": func(e *protocol.TokenPutEntry) { e.ID = "x" },
		"SHA-256":               func(e *protocol.TokenPutEntry) { e.SHA256 = "abc" },
		`the role "root"`:       func(e *protocol.TokenPutEntry) { e.Role = "root" },
		`the role "anonymous"`:  func(e *protocol.TokenPutEntry) { e.Role = "anonymous" },
		`the owner "a.b"`:       func(e *protocol.TokenPutEntry) { e.Owner = "a.b" },
		"before 1970":           func(e *protocol.TokenPutEntry) { e.Expires = -1 },
	} {
		m := newMachine(t)
		e := tokenEntry(1, 'a')
		change(e)
		if err := m.refused(protocol.EntryTokenPut, e); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
		s := *m.s
		s.tokens = []*Token{{protocol.Token{ID: e.ID, Role: e.Role, Owner: e.Owner, Expires: e.Expires}, e.SHA256}}
		if _, err := Decode(bytes.NewReader(encode(t, &s))); !errors.Is(err, ErrSnapshot) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("in a snapshot, want %q: %v", want, err)
		}
	}
	s := golden(t)
	s.tokens = []*Token{s.tokens[1], s.tokens[0]}
	if _, err := Decode(bytes.NewReader(encode(t, s))); !errors.Is(err, ErrSnapshot) ||
		!strings.Contains(err.Error(), "tokens are not sorted") {
		t.Error(err)
	}
}

// TestMaxTokens: if there are too many tokens, the token that ended first is forgotten. A valid token
// never is.
func TestMaxTokens(t *testing.T) {
	m := newMachine(t)
	for n := range MaxTokens {
		e := tokenEntry(n, 'a')
		if e.Expires = 0; n == 7 {
			e.Expires = 40
		}
		m.do(protocol.EntryTokenPut, e)
	}
	next := tokenEntry(MaxTokens, 'a')
	next.Time = 39
	if err := m.refused(protocol.EntryTokenPut, next); !errors.Is(err, ErrTokens) {
		t.Fatal(err)
	}
	m.do(protocol.EntryTokenRevoke, &protocol.TokenRevokeEntry{ID: tokenEntry(5, 'a').ID, Time: 45})
	m.do(protocol.EntryTokenRevoke, &protocol.TokenRevokeEntry{ID: tokenEntry(9, 'a').ID, Time: 42})
	for i, forgotten := range []int{7, 9, 5} {
		next = tokenEntry(MaxTokens+i, 'a')
		next.Time, next.Expires = 60, 0
		m.do(protocol.EntryTokenPut, next)
		if m.s.Token(tokenEntry(forgotten, 'a').ID) != nil || m.s.Token(next.ID) == nil || len(m.s.Tokens()) != MaxTokens {
			t.Errorf("token %d is still there", forgotten)
		}
	}
	next.ID = tokenEntry(MaxTokens+9, 'a').ID
	if err := m.refused(protocol.EntryTokenPut, next); !errors.Is(err, ErrTokens) {
		t.Error(err)
	}
	if again := decode(t, encode(t, m.s)); len(again.Tokens()) != MaxTokens {
		t.Error("a full table does not survive a snapshot")
	}
}

// TestQuotaOfToken: a submission is refused if its owner has as many jobs as the token permits.
func TestQuotaOfToken(t *testing.T) {
	m := newMachine(t)
	m.start()
	send := func(token, owner string) *protocol.SubmitEntry {
		e := submitEntry(token, token, 3)
		e.Owner, e.MaxOwned = owner, 2
		return e
	}
	first := m.do(protocol.EntrySubmit, send("q1", "ana")).(*Job)
	m.do(protocol.EntrySubmit, send("q2", "ana"))
	if err := m.refused(protocol.EntrySubmit, send("q3", "ana")); !errors.Is(err, ErrQueue) ||
		!strings.Contains(err.Error(), "the quota of the token or certificate is 2") {
		t.Fatal(err)
	}
	m.do(protocol.EntrySubmit, send("q2", "ana")) // the same submission again
	m.do(protocol.EntrySubmit, send("q4", "sam"))
	m.do(protocol.EntryCancel, &protocol.JobEntry{Job: first.ID})
	m.do(protocol.EntrySubmit, send("q3", "ana"))
}

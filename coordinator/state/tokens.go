package state

import (
	"errors"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/internal/wire"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// MaxTokens bounds the tokens that a cluster knows. Beyond it, the token that ended first is
// forgotten. If none has ended, another token is refused.
const MaxTokens = 10_000

// ErrTokens says that the cluster has as many valid tokens as it may have.
var ErrTokens = errors.New("too many tokens")

// tokenTable has the tokens of users, by ID.
type tokenTable struct{ tokens []*Token }

// Token is a token of a user. It is immutable.
type Token struct {
	protocol.Token
	Hash string // SHA-256 of the secret
}

// ended returns when a token ended, if it has ended at a time.
func (t *Token) ended(now int64) (at int64, ok bool) {
	switch {
	case t.Revoked != 0 && (t.Expires == 0 || t.Revoked < t.Expires):
		return t.Revoked, true
	case t.Expires != 0 && t.Expires <= now:
		return t.Expires, true
	}
	return 0, false
}

// Tokens lists the tokens by ID, also expired and revoked ones.
func (t *tokenTable) Tokens() []*Token { return t.tokens }

// ValidTokens counts the tokens that are valid at a time, in Unix seconds.
func (t *tokenTable) ValidTokens(now int64) (n int) {
	for _, one := range t.tokens {
		if _, ended := one.ended(now); !ended {
			n++
		}
	}
	return n
}

// Token returns the token with an ID, or nil.
func (t *tokenTable) Token(id string) *Token {
	if i, ok := t.findToken(id); ok {
		return t.tokens[i]
	}
	return nil
}

func (t *tokenTable) findToken(id string) (int, bool) {
	return search(t.tokens, id, func(t *Token) string { return t.ID })
}

// WithoutTokens returns the state without tokens.
func (s *State) WithoutTokens() *State {
	next := *s
	next.tokens = nil
	return &next
}

// putToken adds a token. The same token again changes nothing, even if it was revoked meanwhile.
func putToken(s *State, e *protocol.TokenPutEntry) (any, error) {
	t := &Token{protocol.Token{ID: e.ID, Role: e.Role, Owner: e.Owner, Quota: e.Quota, Created: e.Time, Expires: e.Expires}, e.SHA256}
	if err := t.check(); err != nil {
		return nil, err
	}
	i, ok := s.findToken(t.ID)
	if ok {
		same := *t
		old := s.tokens[i]
		same.Created, same.Revoked = old.Created, old.Revoked
		if same != *old {
			return nil, fmt.Errorf("a token with the id %s %w and is another one; create the token again, which draws another id", t.ID, ErrExists)
		}
		return old, nil
	}
	if len(s.tokens) >= MaxTokens {
		first, when := -1, int64(0)
		for k, one := range s.tokens {
			if at, ok := one.ended(e.Time); ok && (first < 0 || at < when) {
				first, when = k, at
			}
		}
		if first < 0 {
			return nil, fmt.Errorf("%w: %d tokens are valid, and at most %d are possible; revoke some with coppice token revoke", ErrTokens, len(s.tokens), MaxTokens)
		}
		s.tokens = removed(s.tokens, first)
		i, _ = s.findToken(t.ID)
	}
	s.tokens = inserted(s.tokens, i, t)
	return t, nil
}

// revokeToken ends a token. A token that was revoked before stays as it is.
func revokeToken(s *State, e *protocol.TokenRevokeEntry) (any, error) {
	i, ok := s.findToken(e.ID)
	if !ok {
		return nil, fmt.Errorf("token %.80q: %w", e.ID, ErrNotFound)
	}
	if s.tokens[i].Revoked == 0 {
		next := *s.tokens[i]
		next.Revoked = max(1, e.Time)
		s.tokens = replaced(s.tokens, i, &next)
	}
	return s.tokens[i], nil
}

// check returns an error if a token is not valid.
func (t *Token) check() error {
	switch {
	case protocol.CheckTokenID(t.ID) != nil:
		return invalid("%v", protocol.CheckTokenID(t.ID))
	case !isDigest(t.Hash):
		return invalid("the SHA-256 of token %s is not valid: want 64 hexadecimal digits", t.ID)
	case !slices.Contains(rights.Users, rights.Role(t.Role)):
		return invalid("the role %.80q of token %s: want read, submit or admin", t.Role, t.ID)
	case protocol.CheckID(t.Owner) != nil:
		return invalid("the owner %.80q of token %s: want 1 to 64 letters, digits, - or _", t.Owner, t.ID)
	case t.Expires < 0 || t.Revoked < 0:
		return invalid("token %s ends before 1970", t.ID)
	}
	return nil
}

func (t *Token) fields(c *wire.Coder) {
	c.Text("id", &t.ID)
	c.Text("SHA-256", &t.Hash)
	c.Text("role", &t.Role)
	c.Text("owner", &t.Owner)
	wire.Number(c, "quota", &t.Quota, 1<<32-1)
	wire.Numbers(c, "created", &t.Created, &t.Expires, &t.Revoked)
}

// readToken adds a token of a snapshot.
func (s *State) readToken(c *wire.Coder) {
	t := new(Token)
	if t.fields(c); c.Failed() {
		return
	}
	if err := t.check(); err != nil {
		c.Failf("%v", err)
	}
	if n := len(s.tokens); n > 0 && s.tokens[n-1].ID >= t.ID {
		c.Failf("tokens are not sorted by ID: %.80q comes too late", t.ID)
	}
	if s.tokens = append(s.tokens, t); len(s.tokens) > MaxTokens {
		c.Failf("want at most %d tokens", MaxTokens)
	}
}

package access

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

// Reason is why a request is refused.
type Reason string

// The reasons.
const (
	ReasonIdentity    Reason = "identity"    // the caller has neither a certificate nor a token
	ReasonCertificate Reason = "certificate" // it is revoked, has expired, or is of another cluster
	ReasonToken       Reason = "token"       // it is unknown, has expired, or is revoked
	ReasonRole        Reason = "role"        // the role may not make the request
	ReasonOwner       Reason = "owner"       // another user has made what the request is about
)

// Reasons lists the reasons.
var Reasons = []Reason{ReasonIdentity, ReasonCertificate, ReasonToken, ReasonRole, ReasonOwner}

// grant is what is known of a request and its caller.
type grant struct {
	Caller
	access  rights.Access
	settled bool // true if the caller owns what the request changes
	refused func(reason Reason, err error)
}

// deny tells of a refusal, and returns its error.
func (g *grant) deny(reason Reason, err error) error {
	if g.refused != nil {
		g.refused(reason, err)
	}
	return err
}

type grantKey struct{}

// With returns a context of a request with its caller.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, grantKey{}, &grant{Caller: c})
}

// Of returns the caller of a request. Without Gate.Identify it is anonymous.
func Of(ctx context.Context) *Caller {
	if g, ok := ctx.Value(grantKey{}).(*grant); ok {
		return &g.Caller
	}
	return &Caller{Role: rights.Anonymous}
}

// Route returns a handler that answers the callers with a right to a request. pattern is a
// method and a path, as http.ServeMux reads them. The handler may make other requests for the same caller, with its
// context: each has its own right.
func Route(pattern string, next http.HandlerFunc) http.HandlerFunc {
	method, path, _ := strings.Cut(pattern, " ")
	return func(w http.ResponseWriter, r *http.Request) {
		g := &grant{Caller: Caller{Role: rights.Anonymous}}
		if of, ok := r.Context().Value(grantKey{}).(*grant); ok {
			g.Caller, g.refused = of.Caller, of.refused
		}
		r = r.WithContext(context.WithValue(r.Context(), grantKey{}, g))
		switch g.access = rights.OnHTTP(g.Role, method, path); {
		case g.access == rights.None:
			reason := ReasonRole
			if g.Role == rights.Anonymous {
				reason = ReasonIdentity
			}
			refuse(w, http.StatusForbidden, g.deny(reason, g.refusal(method+" "+path, rights.Least(method, path))))
			return
		case g.access == rights.Local && r.URL.Query().Get("local") != "true":
			refuse(w, http.StatusForbidden, g.deny(ReasonRole, fmt.Errorf("%s may ask %s %s only with local=true", &g.Caller,
				method, path)))
			return
		case g.access == rights.Status:
			w = statusOnly{w}
		}
		next(w, r)
	}
}

// refusal says which role a request needs, and who can grant it.
func (g *grant) refusal(request string, least rights.Role) error {
	if g.Role == rights.Anonymous {
		return errNoIdentity
	}
	if least == "" {
		return fmt.Errorf("%s may not make the request %s: only coordinators make it, with a certificate of coppice certs "+
			"node", &g.Caller, request)
	}
	advice := fmt.Sprintf("an admin grants it with coppice certs client NAME --role %[1]s or coppice token create NAME "+
		"--role %[1]s", least)
	return fmt.Errorf("%s may not make the request %s, which needs the role %s; %s", &g.Caller, request, least, advice)
}

// refuse answers a caller without a right.
func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// an error: the caller has ended the connection
	_ = json.NewEncoder(w).Encode(protocol.Problem{Error: err.Error(), Kind: protocol.ProblemKind(status, false),
		Form: errtext.Of(err.Error(), err)})
}

// statusOnly writes the status of a response without its body.
type statusOnly struct{ http.ResponseWriter }

// Write implements io.Writer.
func (w statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// Own returns nil if the caller of a request may change what owner has made. what names it.
func Own(ctx context.Context, what, owner string) error {
	g, ok := ctx.Value(grantKey{}).(*grant)
	if !ok {
		return fmt.Errorf("%s: %w", what, ErrOwner)
	}
	if Owns(ctx, owner) {
		return nil
	}
	err := fmt.Errorf("%s: %w", what, errNobody)
	if owner != "" {
		err = fmt.Errorf("%s: %w: it belongs to %s; %s may change only its own; ask the owner or an admin", what, ErrOwner,
			owner, &g.Caller)
	}
	return g.deny(ReasonOwner, err)
}

// Owns reports whether the caller of a request may change what owner has made.
func Owns(ctx context.Context, owner string) bool {
	g, ok := ctx.Value(grantKey{}).(*grant)
	if !ok || g.Role != rights.Admin && (owner == "" || g.Name != owner) {
		return false
	}
	g.settled = true
	return true
}

// Read returns nil if the caller of a request may read something: it is not private, or the caller is its owner or an
// admin. kind and name say what it is, as in the commands: dataset, job or experiment. Coordinators may read
// everything. A process that has the name of a user is not that user.
func Read(ctx context.Context, kind, name string, of protocol.Ownership) error {
	if Reads(ctx, of) {
		return nil
	}
	g, ok := ctx.Value(grantKey{}).(*grant)
	if !ok {
		return fmt.Errorf("%s %s: %w", kind, name, ErrPrivate)
	}
	return g.deny(ReasonOwner, fmt.Errorf("%[1]s %[2]s: %[3]w: only %[4]s and admins may read it, and the caller is "+
		"%[5]s; one of them can share it: coppice %[1]s share %[2]s",
		kind, name, ErrPrivate, of.Owner, &g.Caller))
}

// Reads reports whether the caller of a request may read something.
func Reads(ctx context.Context, of protocol.Ownership) bool {
	g, ok := ctx.Value(grantKey{}).(*grant)
	switch {
	case !of.Private:
		return true
	case !ok:
		return false
	case g.Role == rights.Admin, g.Role == rights.Coordinator:
		return true
	}
	return of.Owner != "" && g.Name == of.Owner && slices.Contains(rights.Users, g.Role)
}

// Settled reports whether a request may change the state: its caller may change everything,
// or owns what it changes.
func Settled(ctx context.Context) bool {
	g, ok := ctx.Value(grantKey{}).(*grant)
	return ok && (g.access == rights.Full || g.access == rights.Own && g.settled)
}

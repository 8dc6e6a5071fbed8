package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/rights"
)

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
		err = fmt.Errorf("%s: %w: it belongs to %s; %s may change only its own; ask the owner or an admin", what, ErrOwner, owner, &g.Caller)
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

// Read returns nil if the caller of a request may read something: it is not private, or the caller is its owner or an admin.
// kind and name say what it is, as in the commands: dataset, job or experiment. Coordinators may read everything. A process
// that has the name of a user is not that user.
func Read(ctx context.Context, kind, name string, of protocol.Ownership) error {
	if Reads(ctx, of) {
		return nil
	}
	g, ok := ctx.Value(grantKey{}).(*grant)
	if !ok {
		return fmt.Errorf("%s %s: %w", kind, name, ErrPrivate)
	}
	return g.deny(ReasonOwner, fmt.Errorf("%[1]s %[2]s: %[3]w: only %[4]s and admins may read it, and the caller is %[5]s; one of them can share it: coppice %[1]s share %[2]s",
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

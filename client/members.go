package client

import (
	"context"
	"fmt"
	"net/http"

	"github.com/coppice-ldl/coppice/protocol"
)

// Members lists the coordinators.
func (c *Client) Members(ctx context.Context) (*protocol.Members, error) {
	var v protocol.Members
	return &v, c.json(ctx, http.MethodGet, at("members"), nil, &v)
}

// AddMember makes a coordinator that runs and waits a member. It does not vote yet
// when this returns: Members tells once it has caught up.
func (c *Client) AddMember(ctx context.Context, r protocol.AddRequest) (*protocol.Members, error) {
	var v protocol.Members
	return &v, c.json(ctx, http.MethodPost, at("members"), r, &v)
}

// RemoveMember takes a coordinator out of the cluster; the leader hands over
// first. One that is no member is an error, unless it was when this was called. It
// returns the members that are left.
func (c *Client) RemoveMember(ctx context.Context, id string) (*protocol.Members, error) {
	before, err := c.Members(ctx)
	if err != nil {
		return nil, err
	}
	after := new(protocol.Members)
	if err = c.json(ctx, http.MethodDelete, at("members", id), nil, after); IsNotFound(err) && has(before, id) {
		refused := err
		if after, err = c.Members(ctx); err == nil && has(after, id) {
			return nil, refused
		}
		// A first try went through, and its answer was lost.
	}
	if err == nil && has(after, id) {
		err = fmt.Errorf("%s is still listed as a member, although the cluster says that it was removed; try again", id)
	}
	return after, err
}

func has(m *protocol.Members, id string) bool {
	for _, one := range m.Members {
		if one.ID == id {
			return true
		}
	}
	return false
}

// TransferLeadership hands the leadership over to a coordinator; empty: to any
// other.
func (c *Client) TransferLeadership(ctx context.Context, to string) error {
	return c.json(ctx, http.MethodPost, at("transfer"), protocol.TransferRequest{To: to}, nil)
}

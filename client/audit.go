package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/coppice-ldl/coppice/protocol"
)

// Audit lists the newest audit records that a query asks for, the newest first.
func Audit(ctx context.Context, c *Client, q protocol.AuditQuery) (list []protocol.AuditRecord, err error) {
	values := make(url.Values)
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Since > 0 {
		values.Set("since", strconv.FormatInt(q.Since, 10))
	}
	if q.Caller != "" {
		values.Set("caller", q.Caller)
	}
	if q.Refused {
		values.Set("refused", "true")
	}
	return list, c.json(ctx, http.MethodGet, at("audit")+"?"+values.Encode(), nil, &list)
}

// Revoke revokes a certificate. Time is set by the cluster.
func Revoke(ctx context.Context, c *Client, r protocol.Revocation) (*protocol.Revocation, error) {
	var v protocol.Revocation
	return &v, c.json(ctx, http.MethodPost, at("revocations"), r, &v)
}

package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// The times of joining.
const (
	joinWithin = 30 * time.Second // in which some coordinator must answer
	joinPause  = 250 * time.Millisecond
	askTimeout = 2 * time.Second
)

// asker asks other coordinators; a connection serves one question, so that none is
// left open.
var asker = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// ask gets a JSON value from a coordinator.
func ask(ctx context.Context, address, path string, v any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		return err
	}
	response, err := asker.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, protocol.MaxJSON))
	if err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", address, err)
	}
	return nil
}

func askSelf(ctx context.Context, address string) (s protocol.Self, err error) {
	return s, ask(ctx, address, "/v1/self", &s)
}

// joined is what a coordinator of the cluster tells one that joins.
type joined struct {
	protocol.Self
	coordinators []protocol.MemberEntry
}

// joinCluster asks the coordinators that --join-cluster names until one answers.
func (n *node) joinCluster(ctx context.Context) (*joined, error) {
	ctx, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	var last error
	for ctx.Err() == nil {
		for _, address := range n.cfg.Join {
			j, err := askToJoin(ctx, address)
			if err == nil {
				return j, n.cfg.mayJoin(address, j)
			}
			last = err
		}
		wait.For(ctx, joinPause)
	}
	return nil, fmt.Errorf("no coordinator answers at %s: %w", strings.Join(n.cfg.Join, ", "), errors.Join(last, context.Cause(ctx)))
}

func askToJoin(ctx context.Context, address string) (*joined, error) {
	self, err := askSelf(ctx, address)
	if err != nil {
		return nil, err
	}
	var c protocol.Cluster
	if err := ask(ctx, address, "/v1/cluster", &c); err != nil {
		return nil, err
	}
	if len(c.Coordinators) == 0 {
		return nil, fmt.Errorf("%s: the cluster has not started yet", address)
	}
	return &joined{Self: self, coordinators: c.Coordinators}, nil
}

// mayJoin refuses to join a cluster that would not have this coordinator. One that is a
// member already, at the same address, has lost its folder: the leader replaces it.
func (c *Config) mayJoin(address string, j *joined) error {
	if j.Protocol != protocol.Version || j.Numerics != round.Numerics {
		return fmt.Errorf("the cluster at %s (%s) has protocol version %d and arithmetic version %d; this coordinator (%s) has %d and %d",
			address, j.Version, j.Protocol, j.Numerics, version.String, protocol.Version, round.Numerics)
	}
	if h := time.Duration(j.Heartbeat) * time.Millisecond; h != c.Heartbeat.Truncate(time.Millisecond) { // which is what is told
		return fmt.Errorf("%w: the cluster at %s has a heartbeat of %v; start with --heartbeat %v", ErrUsage, address, h, h)
	}
	for _, m := range j.coordinators {
		if m.ID == c.ID && m.HTTP != c.entry().HTTP {
			return fmt.Errorf("%w: the cluster at %s already has a coordinator %s, at %s; take another --id, or remove that coordinator first: coppice cluster remove %s",
				ErrUsage, address, c.ID, m.HTTP, c.ID)
		}
	}
	return nil
}

package coordinator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/round"
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

// identify finds out which cluster this coordinator is of: by its folder, by
// asking those that --join-cluster names, or, at a cluster's beginning, by itself.
func (n *node) identify(ctx context.Context) error {
	kept := n.cfg.kept
	_, missing := os.Stat(n.cfg.clusterFile())
	known := missing == nil
	switch {
	case len(n.cfg.Join) > 0 && !known:
		c, err := n.joinCluster(ctx)
		if err != nil {
			return err
		}
		n.subjects = protocol.Subjects{Cluster: c.Cluster}
		kept.Joined, kept.External, kept.Members = true, c.External, c.coordinators
		if c.member {
			kept.Used = true
			n.cfg.Log.Warn("the folder is empty, and this coordinator is a member of the cluster: it has lost its log", "dir", n.cfg.Dir)
		}
	default:
		id, err := n.cfg.clusterID()
		if err != nil {
			return err
		}
		n.subjects = protocol.Subjects{Cluster: id}
	}
	if n.cfg.NATS == "" {
		n.cfg.NATS = kept.External
	}
	n.roster = newRoster(&n.cfg, kept)
	n.peers = newPeers(n.roster, n.subjects.Cluster, known || len(n.cfg.Join) > 0)
	if len(kept.Members) == 0 {
		n.roster.kept.Members = n.roster.known()
	}
	return nil
}

// joined is what a coordinator of the cluster tells one that joins.
type joined struct {
	protocol.Self
	coordinators []protocol.MemberEntry
	member       bool // the one that joins is among them, where it is: it has lost its folder
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
		pause(ctx, joinPause)
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
		return nil, fmt.Errorf("%s: the cluster is not formed yet", address)
	}
	return &joined{Self: self, coordinators: c.Coordinators}, nil
}

// mayJoin refuses to join a cluster that would not have this coordinator. One that is a
// member already, at the same address, has lost its folder and fetches what it remembered.
func (c *Config) mayJoin(address string, j *joined) error {
	if j.Protocol != protocol.Version || j.Numerics != round.Numerics {
		return fmt.Errorf("the cluster at %s (%s) speaks protocol %d and computes numerics %d; this coordinator (%s) speaks %d and computes %d",
			address, j.Version, j.Protocol, j.Numerics, version.String, protocol.Version, round.Numerics)
	}
	if h := time.Duration(j.Heartbeat) * time.Millisecond; h != c.Heartbeat.Truncate(time.Millisecond) { // which is what is told
		return fmt.Errorf("%w: the cluster at %s has a heartbeat of %v; start with --heartbeat %v", ErrUsage, address, h, h)
	}
	for _, m := range j.coordinators {
		switch {
		case m.ID != c.ID:
		case m.HTTP == c.entry().HTTP:
			j.member = true
		default:
			return fmt.Errorf("%w: the cluster at %s has a coordinator %s already, at %s; take another id, or remove that one first: coppice cluster remove %s",
				ErrUsage, address, c.ID, m.HTTP, c.ID)
		}
	}
	return nil
}

// pause waits, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

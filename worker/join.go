package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrVersion is wrapped by the error of a worker that meets a cluster of another
// protocol or numerics.
var ErrVersion = errors.New("worker: the cluster has another version")

const (
	joinTimeout  = 2 * time.Second        // for the coordinators' answers
	joinPause    = 250 * time.Millisecond // between two rounds of asking
	joinLogEvery = 10 * time.Second       // between two log lines while nobody answers
)

// joiner asks coordinators what a worker must know of its cluster.
type joiner struct {
	addresses []string // as configured, then those that were learnt
	joined    string   // as configured, with blanks between
	nats      []string // to use instead of what the coordinators name; empty: theirs
	http      *http.Client
	net       *Net // nil: HTTP
	log       *slog.Logger

	folder *folder           // where learnt coordinators are kept; nil: nowhere
	last   known             // what is there
	of     map[string]string // clusters of addresses that are from there only
}

func newJoiner(addresses []string, net *Net, log *slog.Logger) *joiner {
	j := &joiner{http: &http.Client{Transport: &http.Transport{}}, net: net, log: log, of: make(map[string]string)}
	for _, a := range addresses {
		j.learn(joinAddress(a))
	}
	j.joined = strings.Join(j.addresses, " ")
	return j
}

// joinAddress is an address of --join without what a URL may add.
func joinAddress(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "http://"), "/")
}

func (j *joiner) close() { j.http.CloseIdleConnections() }

// forget drops the addresses at which the cluster has no coordinator any more, as one says
// that hears a leader; those of --join stay.
func (j *joiner) forget(c *protocol.Cluster) {
	if c.Leader == "" || len(c.Coordinators) == 0 {
		return
	}
	configured := strings.Fields(j.joined)
	j.addresses = slices.DeleteFunc(j.addresses, func(a string) bool {
		if slices.Contains(configured, a) || slices.ContainsFunc(c.Coordinators, func(m protocol.MemberEntry) bool { return m.HTTP == a }) {
			return false
		}
		delete(j.of, a)
		return true
	})
}

func (j *joiner) learn(address string) {
	delete(j.of, address)
	for _, known := range j.addresses {
		if known == address {
			return
		}
	}
	if address != "" {
		j.addresses = append(j.addresses, address)
	}
}

// cluster asks until a coordinator answers. The error is ctx's, or wraps
// ErrVersion.
func (j *joiner) cluster(ctx context.Context) (*protocol.Cluster, error) {
	var logged time.Time
	for {
		c, err := j.ask(ctx)
		if c != nil || ctx.Err() != nil || errors.Is(err, ErrVersion) {
			return c, errors.Join(ctx.Err(), err)
		}
		if time.Since(logged) >= joinLogEvery {
			logged = time.Now()
			j.log.Warn("no coordinator answers; the worker keeps asking", "reason", err)
		}
		wait.For(ctx, joinPause)
	}
}

// ask asks all known coordinators and returns the newest answer.
func (j *joiner) ask(ctx context.Context) (*protocol.Cluster, error) {
	list, err := j.askAll(ctx, joinTimeout, func(c *protocol.Cluster) bool { return c.Leader != "" })
	return newest(list), err
}

// askOne asks the coordinator at an address; cluster, where it is not empty, is the id
// that it must have.
func (j *joiner) askOne(ctx context.Context, address, cluster, wait string) (*protocol.Cluster, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+protocol.ClusterLocal+wait, nil)
	if err != nil {
		return nil, err
	}
	response, err := j.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, protocol.MaxJSON))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, response.Status)
	}
	c := new(protocol.Cluster)
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if cluster != "" && c.ID != cluster { // another's, at an address that is used again
		return nil, fmt.Errorf("%s: the coordinator there is now in cluster %s, but this worker is in cluster %s", address, c.ID, cluster)
	}
	return c, checkCluster(address, c)
}

// checkCluster tells whether a worker of this version can serve the cluster.
func checkCluster(address string, c *protocol.Cluster) error {
	if c.Protocol != protocol.Version || c.Numerics != round.Numerics {
		return fmt.Errorf("%w: the coordinator at %s (%s) has protocol version %d and arithmetic version %d; this worker (%s) has %d and %d",
			ErrVersion, address, c.Version, c.Protocol, c.Numerics, version.String, protocol.Version, round.Numerics)
	}
	if c.ID == "" || len(c.NATS) == 0 || c.Heartbeat <= 0 {
		return fmt.Errorf("%s: the cluster has not started yet", address)
	}
	return nil
}

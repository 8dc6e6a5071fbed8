package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/version"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// ErrVersion is wrapped by the error of a worker that meets a cluster of another protocol or
// numerics.
var ErrVersion = errors.New("worker: the cluster has another version")

const (
	joinTimeout  = 2 * time.Second        // for the coordinators' answers
	joinPause    = 250 * time.Millisecond // between two rounds of questions
	joinLogEvery = 10 * time.Second       // between two log lines while nobody answers
	refusedMost  = 10 * time.Second       // longest pause between two rounds that are refused
	refusedText  = 500                    // bytes of the text of a refusal
)

// coordinators knows the addresses of coordinators and asks them what a worker must know of its
// cluster. It learns further addresses from their answers. One goroutine at a time uses it.
type coordinators struct {
	addresses []string // the addresses of --join come first
	joined    int      // the number of addresses of --join
	nats      []string // to use instead of what the coordinators name; empty: theirs
	http      *http.Client
	scheme    string // of URLs
	net       *Net   // nil: HTTP
	log       *slog.Logger

	refused []string // why coordinators refused the worker in the last round, if none accepted it
	rounds  int      // rounds in a row that were refused
	warned  string   // the reasons that were logged last

	turned atomic.Pointer[time.Time] // when sessions last asked, or looked at the session
}

// turn notes that sessions go on.
func (c *coordinators) turn() {
	now := time.Now()
	c.turned.Store(&now)
}

func newCoordinators(cfg *Config) *coordinators {
	c := &coordinators{
		http: &http.Client{Transport: cfg.TLS.Transport(&http.Transport{})}, scheme: cfg.TLS.URLScheme(), net: cfg.Net,
		nats: cfg.NATS, log: cfg.Log,
	}
	for _, a := range cfg.Join {
		c.learn(joinAddress(a))
	}
	c.joined = len(c.addresses)
	c.turn()
	return c
}

func (c *coordinators) close() { c.http.CloseIdleConnections() }

// learn adds an address that a coordinator, or the configuration, named.
func (c *coordinators) learn(address string) {
	if address != "" && !slices.Contains(c.addresses, address) {
		c.addresses = append(c.addresses, address)
	}
}

// findCluster asks until a coordinator answers. The error is ctx's, or wraps ErrVersion.
func (c *coordinators) findCluster(ctx context.Context) (*protocol.Cluster, error) {
	var logged time.Time
	for {
		list, err := c.ask(ctx, joinTimeout, func(a *protocol.Cluster) bool { return a.Leader != "" })
		if best := newest(list); best != nil || ctx.Err() != nil || errors.Is(err, ErrVersion) {
			return best, errors.Join(ctx.Err(), err)
		}
		if !c.warnRefused() && time.Since(logged) >= joinLogEvery {
			logged = time.Now()
			c.log.Warn("no coordinator answers; the worker keeps asking", "reason", err)
		}
		wait.For(ctx, c.pause(joinPause))
	}
}

// warnRefused logs why coordinators refuse the worker, if they did in the last round and the reason
// has changed. It reports whether they did.
func (c *coordinators) warnRefused() bool {
	if len(c.refused) == 0 {
		return false
	}
	if reason := strings.Join(c.refused, "; "); reason != c.warned {
		c.warned = reason
		c.log.Warn("no coordinator accepts this worker; the worker keeps asking", "reason", reason)
	}
	return true
}

// pause returns the time until the next round: usual, or longer if the last rounds were refused.
func (c *coordinators) pause(usual time.Duration) time.Duration {
	return max(usual, min(time.Duration(c.rounds)*time.Second, refusedMost))
}

// errRefused is wrapped by the error about a coordinator that answers, but does not accept the worker.
var errRefused = errors.New("the coordinator refuses this worker")

// ask asks every coordinator that is known, at once, and returns the answers that come in time, or
// until one is enough. A coordinator that knows no leader waits half of the time for one. The error
// says why nobody answers.
func (c *coordinators) ask(ctx context.Context, within time.Duration,
	enough func(*protocol.Cluster) bool) ([]*protocol.Cluster, error) {
	c.turn()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if c.net != nil {
		list, err := c.net.Clusters(ctx)
		for _, a := range list {
			err = errors.Join(err, checkCluster("the network", a))
		}
		if err != nil {
			return nil, err
		}
		return list, nil
	}
	wait := fmt.Sprintf("&wait_ms=%d", (within / 2).Milliseconds()) // for a leader
	asked := len(c.addresses)
	type answer struct {
		cluster *protocol.Cluster // nil if there is err
		err     error
	}
	answers := make(chan answer, asked)
	for _, address := range c.addresses {
		go func() {
			a, err := c.askOne(ctx, address, wait)
			answers <- answer{a, err}
		}()
	}
	var list []*protocol.Cluster
	var refused []string
	var other, failed error // about another version, which ends the worker; all errors
	for range asked {       // all, so that no goroutine is left behind
		a := <-answers
		switch {
		case a.err == nil:
			if enough(a.cluster) {
				cancel()
			}
			list = append(list, a.cluster)
		case errors.Is(a.err, ErrVersion):
			other = cmp.Or(other, a.err)
		}
		if errors.Is(a.err, errRefused) {
			refused = append(refused, a.err.Error())
		}
		failed = errors.Join(failed, a.err)
	}
	slices.Sort(refused)
	if len(list) == 0 {
		if c.refused = refused; len(refused) > 0 {
			c.rounds++
		} else {
			c.rounds = 0
		}
		return nil, cmp.Or(other, failed)
	}
	c.refused, c.rounds, c.warned = nil, 0, ""
	for _, a := range list {
		for _, m := range a.Coordinators {
			c.learn(m.HTTP)
		}
		if len(c.nats) > 0 {
			a.NATS = c.nats
		}
	}
	c.forget(newest(list))
	return list, nil
}

// newest returns the answer of the highest epoch; nil: there is none. Of two answers of the same
// epoch it prefers an answer that names a leader. The other coordinator does not know of the leader
// yet, or has lost it.
func newest(answers []*protocol.Cluster) *protocol.Cluster {
	var best *protocol.Cluster
	for _, c := range answers {
		if best == nil || c.Epoch > best.Epoch || c.Epoch == best.Epoch && best.Leader == "" {
			best = c
		}
	}
	return best
}

// askOne asks the coordinator at an address.
func (c *coordinators) askOne(ctx context.Context, address, wait string) (*protocol.Cluster, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.scheme+"://"+address+protocol.ClusterLocal+wait, nil)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, protocol.MaxJSON))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	if certs.WantsTLS(response.StatusCode, body) {
		return nil, fmt.Errorf("%s: %w", address, certs.ErrSecure)
	}
	if response.StatusCode != http.StatusOK {
		text := response.Status
		var p protocol.Problem
		if json.Unmarshal(body, &p) == nil && p.Error != "" {
			text += ": " + strings.ToValidUTF8(p.Error[:min(len(p.Error), refusedText)], "")
		}
		if response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusForbidden {
			return nil, fmt.Errorf("%s: %w: %s", address, errRefused, text)
		}
		return nil, fmt.Errorf("%s: %s", address, text)
	}
	a := new(protocol.Cluster)
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("%s: %w", address, err)
	}
	return a, checkCluster(address, a)
}

// checkCluster returns an error if a worker of this version cannot serve the cluster.
func checkCluster(address string, c *protocol.Cluster) error {
	if c.Protocol != protocol.Version || c.Numerics != round.Numerics {
		return fmt.Errorf("%w: the coordinator at %s (%s) has protocol version %d and arithmetic version %d; this worker "+
			"(%s) has %d and %d",
			ErrVersion, address, c.Version, c.Protocol, c.Numerics, version.String, protocol.Version, round.Numerics)
	}
	if c.ID == "" || len(c.NATS) == 0 || c.Heartbeat <= 0 {
		return fmt.Errorf("%s: the cluster has not started yet", address)
	}
	return nil
}

// forget drops the addresses that are neither in an answer nor in --join. An answer without a leader
// drops none, because its coordinator may be cut off from the others.
func (c *coordinators) forget(a *protocol.Cluster) {
	if a.Leader == "" || len(a.Coordinators) == 0 {
		return
	}
	learnt := slices.DeleteFunc(c.addresses[c.joined:], func(address string) bool {
		return !slices.ContainsFunc(a.Coordinators, func(m protocol.MemberEntry) bool { return m.HTTP == address })
	})
	c.addresses = c.addresses[:c.joined+len(learnt)]
}

// leadership is what a worker knows of its leader. It decides nothing about orders: jobs knows the
// highest leader epoch.
type leadership struct {
	*env
	changed func() // is called after a change

	mu      sync.Mutex // guards what follows
	cluster string     // the id of the cluster that the jobs are of; empty: none
	epoch   uint64     // the highest leader epoch of an announcement, or of a leader that the session has moved to
	name    string     // the coordinator that leads; empty: none has announced itself under epoch
	heard   time.Time  // when the leader was heard last, or when the wait for it began
	vacant  bool       // true if it said that it does not lead any longer
	refused string     // why the leader does not use this worker; empty: it does
	twins   string     // the addresses of this worker and of another one with its id; empty: there is none
}

// hears takes an announcement of the highest epoch. It ignores the announcement if a later leader
// was heard meanwhile, in another session. isNew is true if the leader is new to this worker.
func (l *leadership) hears(m *protocol.Lead) (isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Epoch < l.epoch {
		return false
	}
	l.epoch = m.Epoch
	l.heard, l.vacant = time.Now(), m.Coordinator == ""
	switch {
	case l.vacant:
		l.log.Info("the leader has stepped down", "coordinator", l.name, "epoch", m.Epoch)
		l.name = ""
		l.changed()
	case l.name != m.Coordinator:
		l.name, isNew = m.Coordinator, true
		l.log.Info("the worker has a new leader", "coordinator", m.Coordinator, "epoch", m.Epoch)
		l.changed()
	}
	if reason := m.Refused[l.id]; reason != l.refused {
		l.refused = reason
		if reason != "" {
			l.log.Error("the leader refuses this worker", "reason", reason)
		}
	}
	if both := m.Twins[l.id]; both != l.twins {
		if l.twins = both; both != "" {
			l.log.Error("another worker has the same id; give one of them another --id, and a folder of its own",
				"addresses", both)
		}
	}
	return isNew
}

// expect makes the worker one of a cluster, and reports whether it was one of another. The wait for
// a leader of an epoch begins again; 0: of any. If the epoch is new, nobody has announced itself
// under it.
func (l *leadership) expect(cluster string, epoch uint64) (another bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	another = l.cluster != cluster
	if another {
		l.cluster, l.epoch, l.name, l.refused = cluster, 0, "", ""
	}
	if epoch > l.epoch {
		l.epoch, l.name = epoch, ""
	}
	l.heard, l.vacant = time.Now(), false
	return another
}

// silence returns for how long no leader was heard.
func (l *leadership) silence() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.heard)
}

// trouble says why no orders come; empty: they do.
func (l *leadership) trouble(limits protocol.Timeouts) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch silence := time.Since(l.heard); {
	case silence > limits.LeaderLost:
		return fmt.Sprintf("the worker has not heard from a leader for %v", silence.Round(time.Second))
	case l.refused != "":
		return "the leader refuses this worker: " + l.refused
	case l.name == "":
		return "the worker has not heard from a leader yet"
	}
	return ""
}

// leaderState is what a worker decides by which leader to follow, and at which NATS server.
type leaderState struct {
	epoch  uint64 // the highest seen
	leader string // the coordinator that announced itself under it; empty: none has
	server string // the NATS server of the session; empty: it is not connected

	silent bool // true if the leader was not heard for too long, or said that it does not lead any longer
	lost   bool // true if it was not heard for so long that the cluster may be elsewhere

	tried    uint64 // the epoch of the session's latest attempt to move, or of its beginning
	mayRetry bool   // true if that is long enough ago to try again
}

// state returns what the worker decides by now.
func (l *leadership) state(s *session, epoch uint64) leaderState {
	server := s.conn.ServerName()
	l.mu.Lock()
	defer l.mu.Unlock()
	silence := time.Since(l.heard)
	return leaderState{
		epoch: epoch, leader: l.name, server: server,
		silent: l.vacant || silence >= s.limits.LeaderSilent, lost: silence >= s.limits.LeaderLost,
		tried: s.tried, mayRetry: !time.Now().Before(s.stayUntil),
	}
}

// decision is what a worker does with its session.
type decision int

const (
	stays      decision = iota
	moves               // to the NATS server of the leader that an answer names
	ends                // the cluster has its NATS elsewhere, or is another one
	startsOver          // it ends, and jobs and epochs are forgotten: the cluster began an empty log
)

// shouldAsk reports whether a worker should ask the coordinators who leads: it does not hear its
// leader, or it is connected to another server than the leader's. embedded is true if coordinators
// have NATS servers of their own.
func (s *leaderState) shouldAsk(embedded bool) bool {
	if s.silent {
		return true
	}
	return embedded && s.leader != "" && s.server != s.leader && s.mayMove(s.epoch)
}

// mayMove reports whether a session may move under an epoch. Unless mayRetry is true, the epoch
// must be higher than at the latest attempt. Otherwise a worker could go to and fro between two
// coordinators.
func (s *leaderState) mayMove(epoch uint64) bool { return s.mayRetry || epoch > s.tried }

// isEnough reports whether an answer is enough, whatever the others say: it names a later leader
// than all before, or the leader that is heard.
func (s *leaderState) isEnough(c *protocol.Cluster) bool {
	return c.Leader != "" && (c.Epoch > s.epoch || c.Epoch == s.epoch && !s.silent && c.Leader == s.leader)
}

// decide decides by the answers of coordinators, and returns the answer that decided. It is the one
// of the highest epoch, because orders of lower epochs do not count, from whatever server they
// come. Answers of another cluster count only if there are no others.
func (s *leaderState) decide(now *protocol.Cluster, answers []*protocol.Cluster) (decision, *protocol.Cluster) {
	// Another cluster may have taken over an address.
	own := slices.DeleteFunc(slices.Clone(answers), func(c *protocol.Cluster) bool { return c.ID != now.ID })
	if len(own) > 0 {
		answers = own
	}
	c := newest(answers)
	switch {
	case c == nil:
		return stays, nil
	case s.lost && c.ID != now.ID:
		return ends, c
	case s.lost && s.startedOver(answers):
		return startsOver, c
	case c.ID == now.ID && s.follows(c):
		return moves, c
	case s.lost && !slices.Equal(slices.Sorted(slices.Values(now.NATS)), slices.Sorted(slices.Values(c.NATS))):
		return ends, c
	}
	return stays, c
}

// follows reports whether the session should move to the server of the leader that an answer names.
func (s *leaderState) follows(c *protocol.Cluster) bool {
	embeds := func(m protocol.MemberEntry) bool { return m.ID == c.Leader && slices.Contains(c.NATS, m.NATS) }
	switch {
	case c.Leader == "" || c.Epoch < s.epoch || c.Leader == s.server || !slices.ContainsFunc(c.Coordinators, embeds):
		return false
	case c.Epoch == s.epoch && !s.silent && c.Leader != s.leader: // an epoch has one leader, which is heard
		return false
	}
	return s.mayMove(c.Epoch)
}

// startedOver reports whether a majority of the coordinators know only lower epochs than the
// highest one seen, and one of them hears a leader. Then they began an empty log at the same
// addresses. A minority may be cut off from the others, or may be starting.
func (s *leaderState) startedOver(answers []*protocol.Cluster) bool {
	leads, of := false, 1
	for _, c := range answers {
		if c.Epoch >= s.epoch {
			return false
		}
		leads, of = leads || c.Leader != "", max(of, len(c.Coordinators))
	}
	return leads && len(answers) > of/2
}

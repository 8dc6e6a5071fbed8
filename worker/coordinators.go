package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
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
// cluster. It learns further addresses from their answers, and keeps those in the worker's folder.
// One goroutine at a time uses it.
type coordinators struct {
	addresses []string // the addresses of --join come first
	joined    string   // the addresses of --join, separated by spaces
	nats      []string // to use instead of what the coordinators name; empty: theirs
	http      *http.Client
	scheme    string // of URLs
	net       *Net   // nil: HTTP
	log       *slog.Logger

	refused []string // why coordinators refused the worker in the last round, if none accepted it
	rounds  int      // rounds in a row that were refused
	warned  string   // the reasons that were logged last

	folder *folder           // nil: learnt addresses are not kept
	saved  known             // what its file says
	of     map[string]string // by address that is known only from the file: the cluster that it counts for
}

func newCoordinators(cfg *Config) *coordinators {
	c := &coordinators{
		http: &http.Client{Transport: cfg.TLS.Transport(&http.Transport{})}, scheme: cfg.TLS.URLScheme(), net: cfg.Net, nats: cfg.NATS, log: cfg.Log, of: make(map[string]string),
	}
	for _, a := range cfg.Join {
		c.learn(joinAddress(a))
	}
	c.joined = strings.Join(c.addresses, " ")
	return c
}

func (c *coordinators) close() { c.http.CloseIdleConnections() }

// learn adds an address that a coordinator, or the configuration, named.
func (c *coordinators) learn(address string) {
	delete(c.of, address)
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

// answer is the answer of one coordinator.
type answer struct {
	cluster *protocol.Cluster // nil if there is err
	err     error
	kept    bool // true if the address is known only from the worker's folder
}

// ask asks every coordinator that is known, at once, and returns the answers that come in time, or
// until one is enough. A coordinator that knows no leader waits half of the time for one. The error
// says why nobody answers.
func (c *coordinators) ask(ctx context.Context, within time.Duration, enough func(*protocol.Cluster) bool) ([]*protocol.Cluster, error) {
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
	answers := make(chan answer, asked)
	for _, address := range c.addresses {
		cluster := c.of[address]
		go func() {
			a, err := c.askOne(ctx, address, cluster, wait)
			answers <- answer{a, err, cluster != ""}
		}()
	}
	var came []answer
	var refused []string
	var other, failed error // about another version, which ends the worker; all errors
	for range asked {       // all, so that no goroutine is left behind
		a := <-answers
		switch {
		case a.err == nil:
			if !a.kept && enough(a.cluster) {
				cancel()
			}
			came = append(came, a)
		case errors.Is(a.err, ErrVersion):
			other = cmp.Or(other, a.err)
		}
		if errors.Is(a.err, errRefused) {
			refused = append(refused, a.err.Error())
		}
		failed = errors.Join(failed, a.err)
	}
	slices.Sort(refused)
	list := preferred(came)
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
	c.keep(newest(list))
	return list, nil
}

// preferred leaves out the answers of coordinators that are known only from the folder, if the
// others belong to another cluster: --join decides which cluster a worker serves.
func preferred(came []answer) (list []*protocol.Cluster) {
	joined := ""
	for _, a := range came {
		if !a.kept {
			joined = a.cluster.ID
		}
	}
	for _, a := range came {
		if !a.kept || joined == "" || a.cluster.ID == joined {
			list = append(list, a.cluster)
		}
	}
	return list
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

// askOne asks the coordinator at an address. If cluster is not empty, it must be the id of its
// cluster.
func (c *coordinators) askOne(ctx context.Context, address, cluster, wait string) (*protocol.Cluster, error) {
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
	if certs.Clear(response.StatusCode, body) {
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
	if cluster != "" && a.ID != cluster { // the address is used by another cluster now
		return nil, fmt.Errorf("%s: the coordinator there is now in cluster %s, but this worker is in cluster %s", address, a.ID, cluster)
	}
	return a, checkCluster(address, a)
}

// checkCluster returns an error if a worker of this version cannot serve the cluster.
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

// knownName is the file of the coordinators of a worker's last cluster, in case all coordinators of
// --join are replaced.
//
//	coppice worker's coordinators 1
//	cluster 5f0c1c8a77aa
//	join 10.0.0.1:7100 10.0.0.2:7100
//	10.0.0.4:7100
//
// It counts only for the list of --join with which it was written. A worker with another list may
// be meant for another cluster.
const knownName = "COORDINATORS"

const (
	knownHead    = "coppice worker's coordinators 1"
	maxKnown     = 64       // coordinators
	maxKnownFile = 16 << 10 // bytes
)

// known is the content of the file.
type known struct {
	cluster   string // id
	join      string // the addresses of --join, separated by spaces
	addresses []string
}

func (k *known) encode() string {
	return strings.Join(append([]string{knownHead, "cluster " + k.cluster, "join " + k.join}, k.addresses...), "\n") + "\n"
}

// parseKnown parses a file. Errors name the line.
func parseKnown(text string) (k known, err error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[0] != knownHead || lines[len(lines)-1] != "" {
		return k, errors.New("the file ends too early, or has another version")
	}
	var ok bool
	if k.cluster, ok = strings.CutPrefix(lines[1], "cluster "); !ok || protocol.CheckID(k.cluster) != nil {
		return k, fmt.Errorf("line 2: want the name of the cluster, got %.80q", lines[1])
	}
	if k.join, ok = strings.CutPrefix(lines[2], "join "); !ok {
		return k, fmt.Errorf("line 3: want the value of --join, got %.80q", lines[2])
	}
	k.addresses = lines[3 : len(lines)-1]
	if len(k.addresses) > maxKnown {
		return k, fmt.Errorf("the file lists %d coordinators, want at most %d", len(k.addresses), maxKnown)
	}
	for i, a := range k.addresses {
		if err := protocol.CheckAddress(a); err != nil {
			return k, fmt.Errorf("line %d: %.80q: %w", i+4, a, err)
		}
	}
	return k, nil
}

// readKnown reads the file of a folder. Without a file it returns no addresses.
func readKnown(f *folder) (k known, err error) {
	file, err := os.Open(f.path(knownName))
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return k, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, maxKnownFile+1))
	if err == nil && len(b) > maxKnownFile {
		err = fmt.Errorf("the file is larger than %d bytes", maxKnownFile)
	}
	if err != nil {
		return k, err
	}
	return parseKnown(string(b))
}

// use adds the coordinators that a folder knows after the configured ones, and keeps in the folder
// what is learnt. A file that cannot be read is ignored.
func (c *coordinators) use(f *folder) {
	c.folder = f
	k, err := readKnown(f)
	if err != nil {
		c.log.Warn("the saved list of coordinators cannot be read; the worker knows only the coordinators of --join", "file", f.path(knownName), "error", err)
		return
	}
	c.saved = k
	if len(k.addresses) > 0 && k.join != c.joined {
		c.log.Info("--join has changed, so the saved list of coordinators is not used", "before", k.join, "cluster", k.cluster)
		return
	}
	for _, a := range k.addresses {
		if !slices.Contains(c.addresses, a) {
			c.addresses = append(c.addresses, a)
			c.of[a] = k.cluster
		}
	}
}

// keep saves the coordinators that an answer names, if they have changed. If the answer names a
// leader, it also forgets the addresses that are neither there nor in --join. An answer without a
// leader may name coordinators of long ago, so it counts only if none is known.
func (c *coordinators) keep(a *protocol.Cluster) {
	if a.Leader != "" && len(a.Coordinators) > 0 {
		configured := strings.Fields(c.joined)
		c.addresses = slices.DeleteFunc(c.addresses, func(address string) bool {
			named := slices.ContainsFunc(a.Coordinators, func(m protocol.MemberEntry) bool { return m.HTTP == address })
			if named || slices.Contains(configured, address) {
				return false
			}
			delete(c.of, address)
			return true
		})
	}
	k := known{cluster: a.ID, join: c.joined}
	for _, m := range a.Coordinators {
		if protocol.CheckAddress(m.HTTP) == nil && len(k.addresses) < maxKnown {
			k.addresses = append(k.addresses, m.HTTP)
		}
	}
	same := k.cluster == c.saved.cluster && k.join == c.saved.join
	if c.folder == nil || len(k.addresses) == 0 || protocol.CheckID(k.cluster) != nil ||
		same && (a.Leader == "" || slices.Equal(k.addresses, c.saved.addresses)) {
		return
	}
	if err := c.folder.write(knownName, k.encode()); err != nil {
		c.log.Warn("the list of coordinators could not be saved", "error", err)
		return
	}
	c.saved = k
}

package worker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-ldl/coppice/engine"
	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/rtt"
	"github.com/coppice-ldl/coppice/metrics"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
	"github.com/coppice-ldl/coppice/worker/batch"
)

// Exposure says what is open to processes and callers without an identity.
type Exposure struct {
	// Insecure is true if connections in the clear may leave this machine.
	Insecure bool
	// Hosts are names with a dot by which Config.Listen is reached in the clear.
	Hosts []string
	// OpenMetrics is true if callers without an identity may read /metrics at Config.Listen.
	OpenMetrics bool
	// MetricsToken, if set, returns the SHA-256 of the token with which callers may read /metrics now.
	// ok is false if there is none.
	MetricsToken func() (hash [sha256.Size]byte, ok bool)
}

// Config says how a worker runs. Join and Dir must be given.
type Config struct {
	// Join lists HTTP addresses (host:port) of coordinators. Any of them names the others.
	Join []string
	// NATS lists URLs to connect to instead of what the coordinators name; empty: theirs.
	NATS []string
	// Dir is the worker's own folder: shard cache, results, identity. One process at a time may use
	// it.
	Dir string
	// ID names the worker in the cluster: letters, digits, "-" and "_". If it is empty, the worker
	// has the name in its certificate, or keeps a random name in Dir.
	ID string
	// Slots is the number of tasks computed at once; 0: the number of processors.
	Slots int
	// Listen is the HTTP address of /metrics, /healthz and /readyz; empty: none.
	Listen string
	// TLS has the certificates of this worker, with role worker and its name, or with role pool;
	// nil: connections are in the clear.
	TLS *certs.Source
	Exposure
	// CacheBytes bounds the shard cache on disk. Shards in use may exceed it. 0: DefaultCacheBytes.
	CacheBytes int64
	// KeptBytes bounds the derived values that all jobs together keep in memory, such as routing
	// probabilities. 0: engine.DerivedLimit.
	KeptBytes int
	// MemoryBytes bounds the memory of a task on the whole dataset. A task that would take more is
	// refused, and goes to another worker. 0: no bound.
	MemoryBytes int64
	// Log takes the worker's log; nil: none.
	Log *slog.Logger
	// Net, if set, is how the worker reaches its cluster instead of HTTP and NATS. Join is not used
	// then.
	Net *Net
	// CheckpointEvery is the least time between two checkpoints of a sub-job; 0: two seconds.
	CheckpointEvery time.Duration
	// Processors, if set, is called with the number of processors on which goroutines should run:
	// Slots during tasks of reduce rounds, and otherwise the value of runtime.GOMAXPROCS at the
	// start.
	Processors func(n int)
	// Spoil, if set, may change what the worker computed for a task before it is sent: the partial
	// of a reduce round, or the bytes of a gather round (the other one is nil). It is for tests
	// that find a worker with wrong results.
	Spoil func(unit uint32, sum *round.Partial, part []byte)
	// Ready, if set, is called once when the worker takes orders.
	Ready func(Info)
	// Watch, if set, is called when the worker begins, also if it begins again, and returns soon after
	// ctx is done. check says why this worker cannot work, whatever the coordinators do; nil: it can.
	Watch func(ctx context.Context, check func(ctx context.Context) error)

	last string // the name of the worker before its folder was lost
}

// Net is a network that the caller made.
type Net struct {
	// Clusters asks all coordinators what a worker must know of its cluster, and returns the
	// answers. Without an error there is at least one.
	Clusters func(ctx context.Context) ([]*protocol.Cluster, error)
	// Connect connects to what takes the place of NATS.
	Connect func(ctx context.Context, o bus.Options) (*bus.Conn, error)
}

// Info describes a worker that takes orders.
type Info struct {
	ID      string
	Cluster string // cluster id
	HTTP    string // host:port of its HTTP server, or empty
}

// DefaultCacheBytes bounds a shard cache if Config does not.
const DefaultCacheBytes = 64 << 30

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("worker: the configuration is not valid")

// withDefaults checks c, and fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Dir == "":
		return c, fmt.Errorf("%w: the folder is missing", ErrConfig)
	case c.ID != "" && protocol.CheckID(c.ID) != nil:
		return c, fmt.Errorf("%w: %w", ErrConfig, protocol.CheckID(c.ID))
	case c.Slots > protocol.MaxSlots:
		return c, fmt.Errorf("%w: want at most %d slots, got %d", ErrConfig, protocol.MaxSlots, c.Slots)
	case c.Slots < 0 || c.CacheBytes < 0 || c.KeptBytes < 0 || c.MemoryBytes < 0:
		return c, fmt.Errorf("%w: want no negative numbers, got slots %d, cache %d bytes, kept %d bytes, memory %d bytes",
			ErrConfig, c.Slots, c.CacheBytes, c.KeptBytes, c.MemoryBytes)
	}
	var join []string
	for _, address := range c.Join {
		if address = joinAddress(address); address == "" {
			continue
		}
		if err := protocol.CheckAddress(address); err != nil {
			return c, fmt.Errorf("%w: --join %.80q: %w", ErrConfig, address, err)
		}
		join = append(join, address)
	}
	if c.Join = join; len(join) == 0 && c.Net == nil {
		return c, fmt.Errorf("%w: the address of a coordinator to join is missing", ErrConfig)
	}
	if c.TLS != nil && c.ID == "" {
		own := c.TLS.Identity()
		if c.ID = own.Name; own.Role == certs.Pool { // a worker of a pool draws a name, for a folder that has none
			c.ID, c.last = "", own.Name+"-"+strings.ToLower(rand.Text()[:8])
		}
	}
	c.Slots = cmp.Or(c.Slots, min(runtime.GOMAXPROCS(0), protocol.MaxSlots))
	c.CacheBytes = cmp.Or(c.CacheBytes, DefaultCacheBytes)
	c.KeptBytes = cmp.Or(c.KeptBytes, engine.DerivedLimit)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c, nil
}

// joinAddress returns an address of --join without the parts that only a URL has.
func joinAddress(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "http://"), "/")
}

// env is what the parts of a worker share.
type env struct {
	cfg     Config
	id      string // the name of the worker
	process string // drawn at random; another process with this name has another one
	log     *slog.Logger
	metrics *metrics.Worker
	link    *link
}

// dropped counts a message that is dropped: of an earlier leader epoch, late, or malformed.
func (e *env) dropped(why string) { e.metrics.OrdersDropped.WithLabelValues(why).Inc() }

// session is one connection to one cluster. Jobs outlive it. Only sessions uses the fields after
// running.
type session struct {
	ctx      context.Context // ends with the session
	cancel   context.CancelFunc
	cluster  *protocol.Cluster
	conn     *bus.Conn
	worker   string // its name
	subjects protocol.Subjects
	limits   protocol.Timeouts
	orders   []*bus.Subscription
	blobs    *bus.Served
	running  sync.WaitGroup // the heartbeat, and the measurement of the round trip

	tried     uint64    // the leader epoch of its latest attempt to move, or of its beginning
	stayUntil time.Time // under that epoch it does not move before; zero: at once
	fails     int       // to move, in a row, under that epoch
}

func heartbeatOf(c *protocol.Cluster) time.Duration {
	return time.Duration(c.Heartbeat) * time.Millisecond
}

// link is the worker's connection, over any session. Without a session, messages are lost. Errors
// are only logged, because the other side asks again.
type link struct {
	log       *slog.Logger
	session   atomic.Pointer[session]      // nil while there is none
	roundTrip atomic.Pointer[rtt.Estimate] // the round trip to the session's NATS server; nil: not measured yet
}

var (
	errNoSession = errors.New("worker: there is no connection to the cluster")
	errMoved     = errors.New("worker: the connection has changed meanwhile")
)

// send sends a message.
func (l *link) send(subject string, message []byte) {
	if s := l.session.Load(); s != nil {
		l.sent(subject, s.conn.Send(subject, "", message))
	}
}

// sendParts sends a message that consists of parts, without joining them.
func (l *link) sendParts(subject string, parts ...[]byte) {
	if s := l.session.Load(); s != nil {
		l.sent(subject, s.conn.SendParts(subject, "", parts...))
	}
}

func (l *link) sent(subject string, err error) {
	if err != nil {
		l.log.Debug("a message could not be sent", "subject", subject, "error", err)
	}
}

// reuse gives the memory of a message that nothing reads any longer to later messages.
func (l *link) reuse(message []byte) {
	if s := l.session.Load(); s != nil {
		s.conn.Room().Reuse(message)
	}
}

// fetch pulls a blob from any coordinator that has it. It fails if the session ends meanwhile,
// because no answer would come. If another session has followed, the error is errMoved, and the
// caller may try again.
func (l *link) fetch(ctx context.Context, digest string, size int64, to io.Writer) error {
	s := l.session.Load()
	if s == nil {
		return errNoSession
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	err := s.conn.FetchBlob(ctx, s.subjects.Fetch(s.worker), digest, size, to)
	if next := l.session.Load(); err != nil && s.ctx.Err() != nil && next != nil && next != s {
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return err
}

// fetchBytes fetches a blob that a job names: a list of folds, or initial weights.
func (l *link) fetchBytes(ctx context.Context, digest string, size int64) ([]byte, error) {
	var b bytes.Buffer
	for {
		err := l.fetch(ctx, digest, size, &b)
		if err == nil {
			return b.Bytes(), nil
		}
		if !errors.Is(err, errMoved) || ctx.Err() != nil {
			return nil, batch.Passing(err)
		}
		b.Reset()
	}
}

const (
	tripEvery  = time.Second     // between two measurements of the round trip
	tripAtMost = 2 * time.Second // for a measurement
)

// measure measures the round trip to the session's NATS server until the session ends.
func (l *link) measure(s *session, m *metrics.Worker) {
	l.roundTrip.Store(nil)
	tick := time.NewTicker(tripEvery)
	defer tick.Stop()
	var e rtt.Estimate
	for {
		ctx, cancel := context.WithTimeout(s.ctx, tripAtMost)
		d, err := s.conn.RTT(ctx)
		cancel()
		if err == nil {
			e.Add(d)
			now := e
			l.roundTrip.Store(&now)
			m.RoundTrip.Set(e.Mean.Seconds())
		}
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

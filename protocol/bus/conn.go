// Package bus is Coppice's transport: a NATS server embedded in a coordinator,
// and connections to NATS that carry messages of any size, requests, and blobs
// pulled in chunks.
//
// NATS carries, Raft remembers: core NATS only, delivery at most once. A message
// may be lost whenever a connection is (Send says so when it knows); a process
// that needs an answer asks again. Nothing is buffered while there is no connection.
package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
)

// Errors of this package; test with errors.Is.
var (
	// ErrOffline is returned by Send and Request while no server answers.
	ErrOffline = errors.New("not connected to NATS")
	// ErrNoAnswer is returned by Request when nobody serves its subject, or
	// nobody answers in time.
	ErrNoAnswer = errors.New("no answer came over NATS")
	// ErrNoBlob is returned by FetchBlob when no coordinator has the blob.
	ErrNoBlob = errors.New("no coordinator has the blob")
	// ErrNobody is wrapped, with ErrNoBlob, by the error of who is asked for a blob that it lacks
	// and knows that nobody else has either: see ServeBlobs.
	ErrNobody = errors.New("no other coordinator has the blob")
	// ErrUnreadable is returned by FetchBlob, with ErrNoBlob, when who has the blob cannot
	// read it just now.
	ErrUnreadable = errors.New("the blob exists, but cannot be read at the moment")
	// ErrBlob is returned by FetchBlob when the bytes are not those of the
	// digest, or not of the announced size.
	ErrBlob = errors.New("the bytes of the blob are wrong")
	// ErrTooLarge is returned by Request for a request above the server's
	// greatest payload: requests and their answers are not fragmented.
	ErrTooLarge = errors.New("the request is too large for NATS")
)

// DefaultPing is the interval of pings between clients and servers; a peer that
// misses MissedPings is taken for gone.
const DefaultPing = protocol.DefaultHeartbeat * 3 / 2

// pingsOut is the number of pings that may go unanswered, while nothing else comes either.
const pingsOut = protocol.MissedPings

// Traffic counts what a connection carries. Methods are called concurrently.
type Traffic interface {
	// Sent counts n bytes of payload published.
	Sent(n int)
	// Received counts n bytes of payload delivered.
	Received(n int)
	// Reconnected counts a connection that came back.
	Reconnected()
	// Disconnected counts a connection that was lost.
	Disconnected()
}

// uncounted is the Traffic of a connection without one.
type uncounted struct{}

func (uncounted) Sent(int)      {}
func (uncounted) Received(int)  {}
func (uncounted) Reconnected()  {}
func (uncounted) Disconnected() {}

const (
	// connectTimeout bounds Connect if its context has no deadline.
	connectTimeout = 5 * time.Second
	// reconnectWait is the greatest pause between the first tries to reconnect, and
	// reconnectMost between any. If servers refuse the certificate, see refusedMost.
	reconnectWait = protocol.ReconnectWait
	reconnectMost = protocol.ReconnectMost
	// writeTimeout bounds one write to the socket: a server that hangs must not
	// hold a sender.
	writeTimeout = 2 * time.Second
	// drainTimeout bounds Close.
	drainTimeout = 2 * time.Second
	// backlogMessages is the greatest backlog of a subscription, as Options.Backlog.
	backlogMessages = 1 << 20
	// requestBacklog is the backlog of a subscription that answers requests, in bytes.
	requestBacklog = 4 << 20
)

// Options describe a connection.
type Options struct {
	URLs    []string      // of NATS servers; any will do, and they are tried in this order
	Server  *Server       // connect to this server in-process instead
	TLS     *certs.Source // certificates for the URLs; nil: in the clear
	Name    string        // shown in the server's log
	Answers string        // the subject below which answers to requests come; default: NATS's own
	// MayAnswer reports whether a request on a subject may be answered on the subject that it
	// names for its answer; nil: on any. If not, the request is dropped.
	MayAnswer func(subject, reply string) bool
	Ping      time.Duration // default DefaultPing
	Traffic   Traffic       // default: not counted
	Log       *slog.Logger  // default: nothing is logged
	// Received bounds the bytes of messages that came and are not used yet (see Room), and
	// Backlog the bytes that a subscription has not handled. Beyond it messages are dropped.
	// Defaults: 2 GiB each.
	Received, Backlog int
}

// Conn is a connection to NATS that comes back by itself, for ever. All methods
// may be called concurrently.
type Conn struct {
	link    Link
	traffic Traffic
	log     *slog.Logger
	sender  uint64 // names this connection in fragments
	room    *protocol.Room
	backlog int
	server  *Server                          // the embedded server that it goes to; nil: another one
	answers func(subject, reply string) bool // as Options.MayAnswer
	windows windows                          // of pulls of blobs

	// holds one while the fragments of a long message are sent: a receiver joins one of a sender at a time
	long    chan struct{}
	message atomic.Uint64
	serving sync.WaitGroup // handlers of Serve
}

func newConn(o *Options) *Conn {
	c := &Conn{traffic: o.Traffic, log: o.Log, sender: rand.Uint64(), room: protocol.NewRoom(o.Received),
		backlog: o.Backlog, server: o.Server, answers: o.MayAnswer, long: make(chan struct{}, 1)}
	if c.answers == nil {
		c.answers = func(string, string) bool { return true }
	}
	if c.traffic == nil {
		c.traffic = uncounted{}
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Connect connects to a server. It tries until ctx is done (5 s if ctx has no
// deadline), then says in one line which servers did not answer.
func Connect(ctx context.Context, o Options) (*Conn, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, connectTimeout)
		defer cancel()
	}
	c := newConn(&o)
	link, err := dial(ctx, &o, c)
	if err != nil {
		return nil, err
	}
	c.link = link
	return c, nil
}

func (o *Options) check() error {
	if o.Server == nil && len(o.URLs) == 0 {
		return errors.New("the URL of a NATS server is missing")
	}
	for _, s := range o.URLs {
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return fmt.Errorf("%q is not the URL of a NATS server: want nats://host:port", s)
		}
	}
	return nil
}

func (o *Options) where() string {
	if o.Server != nil {
		return "the embedded server"
	}
	return strings.Join(o.URLs, ", ")
}

// Connected reports whether a server answers now.
func (c *Conn) Connected() bool { return c.link.Connected() }

// ServerName returns the name of the server that the connection goes to, empty
// while there is none.
func (c *Conn) ServerName() string { return c.link.ServerName() }

// Room returns what bounds the bytes of messages that came and are not used yet: the
// fragments of unfinished ones, and what handlers take of it.
func (c *Conn) Room() *protocol.Room { return c.room }

// LocalAddress returns the address (host:port) from which the connection goes to its
// server, empty if there is none.
func (c *Conn) LocalAddress() string {
	if l, ok := c.link.(interface{ LocalAddress() string }); ok {
		return l.LocalAddress()
	}
	return ""
}

// RTT measures the round trip to the server behind what was published before, for 5 s at
// most if ctx has no deadline.
func (c *Conn) RTT(ctx context.Context) (time.Duration, error) { return c.link.RTT(ctx) }

// Flush waits until the server has taken all that was sent before, for 5 s at
// most if ctx has no deadline.
func (c *Conn) Flush(ctx context.Context) error { return c.link.Flush(ctx) }

// Close delivers what has arrived, sends what was sent, closes the connection
// and waits for its goroutines and handlers, 2 s at most for what hangs. It must
// not be called from a handler.
func (c *Conn) Close() {
	c.link.Close()
	c.serving.Wait()
}

// Message is what a subscription delivers. Data belongs to the receiver.
type Message struct {
	Subject string
	Reply   string // subject for answers, may be empty
	Data    []byte
	// Nobody is true if, instead of Data, the message says that nobody listens: a message was
	// sent that wanted its answers on Subject, and had no subscriber.
	Nobody bool
}

// Send publishes a message, in fragments if it is larger than the server
// takes at once. Messages of one goroutine arrive in order. An error says that
// the message was not sent, or not wholly (the receiver then drops it); nil does
// not say that it arrived. msg is not kept.
func (c *Conn) Send(subject, reply string, msg []byte) error {
	var err error
	if len(msg) <= c.link.MaxPayload() {
		err = c.publish(subject, reply, msg)
	} else {
		err = c.split(subject, reply, [][]byte{msg})
	}
	if err != nil {
		return wrap(err, "send to "+subject)
	}
	return nil
}

// SendParts is Send of a message that is parts, one behind the other, which are not copied as a whole.
func (c *Conn) SendParts(subject, reply string, parts ...[]byte) error {
	if err := c.split(subject, reply, parts); err != nil {
		return wrap(err, "send to "+subject)
	}
	return nil
}

// fragmentBytes is the size of the fragments of a long message: with its line, one is what the server reads at once, so
// that neither it nor the library puts it together from several reads, and all copies that are made of it on its way
// stay in the processor's cache.
const fragmentBytes = 64<<10 - 1<<10

func (c *Conn) split(subject, reply string, parts [][]byte) error {
	limit, total := c.link.MaxPayload(), 0
	for _, p := range parts {
		total += len(p)
	}
	long := total > limit
	if long {
		limit = min(limit, fragmentBytes)
		c.long <- struct{}{}
		defer func() { <-c.long }()
	}
	return protocol.Split(parts, limit, c.sender, c.message.Add(1), func(b []byte) error {
		if long && c.server != nil {
			c.server.await(subject, len(b))
		}
		return c.publish(subject, reply, b)
	})
}

func (c *Conn) publish(subject, reply string, b []byte) error {
	err := c.link.Publish(subject, reply, b)
	if err == nil {
		c.traffic.Sent(len(b))
	}
	return err
}

// Subscription is an open subscription.
type Subscription struct {
	closer
	join *protocol.Joiner // nil: it takes no fragments
}

// Subscribe calls f with each message on subject, whole and in order, one at a
// time, in a goroutine of the subscription. It is in force when Subscribe
// returns, and again after each reconnect.
func (c *Conn) Subscribe(subject string, f func(Message)) (*Subscription, error) {
	return c.SubscribeReplies(subject, f, func(string) {})
}

// SubscribeReplies is Subscribe for a subject (with a wildcard, often) on which
// the caller's own messages ask for answers. nobody is called, in the same
// goroutine and order, with the reply subject of a message that had no subscriber. The
// server says so at once, so it tells of a dead receiver long before its silence does.
func (c *Conn) SubscribeReplies(subject string, f func(Message), nobody func(reply string)) (*Subscription, error) {
	join := protocol.NewJoiner(c.room)
	sub, err := c.subscribe(subject, "", func(m Message) {
		if m.Nobody {
			nobody(m.Subject)
			return
		}
		whole, err := join.Add(m.Data)
		if err != nil {
			c.log.Warn("a message was dropped", "subject", m.Subject, "error", err)
			return
		}
		if m.Data = whole; whole != nil {
			f(m)
		}
	})
	if err != nil {
		return nil, err
	}
	sub.join = join
	return sub, nil
}

// subscribe counts what arrives.
func (c *Conn) subscribe(subject, queue string, f func(Message)) (*Subscription, error) {
	sub, err := c.link.Subscribe(subject, queue, func(m Message) {
		c.traffic.Received(len(m.Data))
		f(m)
	})
	if err != nil {
		return nil, err
	}
	return &Subscription{closer: sub}, nil
}

// Close ends the subscription and waits until its handler has returned; what
// has not been delivered is dropped, and so are the fragments of unfinished messages. It
// must not be called from the handler.
func (s *Subscription) Close() {
	s.closer.Close()
	if s.join != nil {
		s.join.Close()
	}
}

// serveAtOnce is the number of requests that one Serve handles at once.
func serveAtOnce() int { return max(16, 4*runtime.GOMAXPROCS(0)) }

// Serve answers requests on subject with f, several at a time but a bounded
// number; each request goes to one member of the queue group, or to all who
// serve the subject if queue is empty. If f returns nil, there is no answer.
// f may keep neither req nor what it returned.
func (c *Conn) Serve(subject, queue string, f func(req []byte) []byte) (*Subscription, error) {
	return c.serve(subject, queue, func(m Message) []byte { return f(m.Data) })
}

func (c *Conn) serve(subject, queue string, f func(Message) []byte) (*Subscription, error) {
	slots := make(chan struct{}, serveAtOnce())
	sub, err := c.subscribe(subject, queue, func(m Message) {
		if m.Reply != "" && !c.answers(m.Subject, m.Reply) {
			c.log.Debug("a request was dropped", "subject", m.Subject, "answer", m.Reply)
			return
		}
		slots <- struct{}{}
		c.serving.Add(1)
		go func() {
			defer func() { <-slots; c.serving.Done() }()
			answer := f(m)
			if answer == nil || m.Reply == "" {
				return
			}
			if err := c.publish(m.Reply, "", answer); err != nil {
				c.log.Warn("an answer could not be sent", "subject", m.Subject, "error", err)
			}
		}()
	})
	if err == nil {
		if b, ok := sub.closer.(interface{ bound(int) }); ok {
			b.bound(min(requestBacklog, cmp.Or(c.backlog, requestBacklog)))
		}
	}
	return sub, err
}

// Request asks on subject and returns the first answer. It returns ErrNoAnswer
// at once if nobody serves the subject, and after ctx's deadline if nobody
// answers, and ErrOffline without a connection.
func (c *Conn) Request(ctx context.Context, subject string, msg []byte) ([]byte, error) {
	if limit := c.link.MaxPayload(); len(msg) > limit {
		return nil, fmt.Errorf("%w: the request to %[3]s has %[2]d bytes, want at most %[4]d", ErrTooLarge, len(msg),
			subject, limit)
	}
	if !c.Connected() {
		return nil, fmt.Errorf("%w: request to %s", ErrOffline, subject)
	}
	c.traffic.Sent(len(msg))
	answer, err := c.link.Request(ctx, subject, msg)
	if err != nil {
		return nil, wrap(err, "request to "+subject)
	}
	c.traffic.Received(len(answer))
	return answer, nil
}

// Link is what a Conn needs of the network beneath it: core NATS, or a simulated
// network (New). Delivery is at most once. All methods may be called concurrently.
type Link interface {
	// Publish sends data, of at most MaxPayload bytes, to those subscribed to
	// subject. Messages of one goroutine arrive in order. data is not kept.
	Publish(subject, reply string, data []byte) error
	// Subscribe calls f with each message on subject (in which * stands for one
	// word), one at a time, in order, in a goroutine of the subscription. Of
	// subscriptions that share a queue, only one gets a message. It is in force when Subscribe returns.
	Subscribe(subject, queue string, f func(Message)) (closer, error)
	// Request publishes data with an inbox of its own for reply and returns the
	// first answer; ErrNoAnswer at once if nobody is subscribed.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Flush waits until all that was published before is on its way.
	Flush(ctx context.Context) error
	// MaxPayload is the greatest message, in bytes.
	MaxPayload() int
	// Connected reports whether the link is up. While it is not, the methods
	// above return ErrOffline.
	Connected() bool
	// ServerName names the server that the link goes to, empty if there is none.
	ServerName() string
	// RTT measures the round trip to the server, until ctx is done.
	RTT(ctx context.Context) (time.Duration, error)
	// Close delivers what has arrived, sends what was published, and ends the link
	// once all handlers have returned.
	Close()
}

// closer is a subscription of a Link. Close waits until its handler has returned.
type closer = interface{ Close() }

// New returns a connection over a link of the caller's making; of o only Traffic
// and Log count.
func New(link Link, o Options) *Conn {
	c := newConn(&o)
	c.link = link
	return c
}

const (
	// longAhead is how many bytes of long messages may wait for clients that read them. What waits is a
	// copy, and the server keeps its memory for the next one. A link of 1 Gbit/s and 100 ms has 12 MiB on its way.
	longAhead = 12 << 20
	// stuckFor is the time after which a client that has read nothing holds up no other client.
	stuckFor = 200 * time.Millisecond
	// lookEvery is the time between two looks at the clients while a message waits.
	lookEvery = 2 * time.Millisecond
)

// flow holds back long messages while clients have not read the messages before them. NATS
// would close the connection of a client for which too much waits.
type flow struct {
	most     int64         // bound of all that waits, in bytes
	deadline time.Duration // ServerOptions.deadline

	mu      sync.Mutex
	all     int64             // bytes that wait, stuck clients included
	moving  int64             // bytes that wait for clients that read
	clients map[uint64]reader // that have not read all
	grew    time.Time         // the last time at which a client had read something
}

// reader is what is known of a client that has not read all.
type reader struct {
	read int64     // bytes
	grew time.Time // the first time at which it had read as much
}

// newFlow returns the flow of a server with ServerOptions.Pending and deadline. An eighth is left to short messages.
func newFlow(pending int64, deadline time.Duration) *flow {
	return &flow{most: pending / 8 * 7, deadline: deadline, clients: make(map[uint64]reader)}
}

// await waits until n bytes of a long message may be published. Clients that read nothing
// delay it by stuckFor, and by the deadline if the memory for messages is full. NATS closes
// the connections of such clients.
func (s *Server) await(subject string, n int) {
	f := s.flow
	bytes := int64(n) * int64(s.s.GlobalAccount().Interest(subject))
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fits(bytes) {
		tick := time.NewTicker(lookEvery) // NATS tells nobody when a client has read
		defer tick.Stop()
		for !f.look(s.clients(), time.Now()) && !f.fits(bytes) {
			<-tick.C
		}
	}
	f.all += bytes
	f.moving += bytes
}

// fits reports whether bytes may be published now. If nothing waits, any number may: to wait
// would not help.
func (f *flow) fits(bytes int64) bool {
	return f.all == 0 || f.all+bytes <= f.most && (f.moving == 0 || f.moving+bytes <= longAhead)
}

// look counts what waits for clients. It reports whether none has read anything until the
// deadline.
func (f *flow) look(conns []*natsserver.ConnInfo, now time.Time) (stuck bool) {
	f.all, f.moving = 0, 0
	before := f.clients
	f.clients = make(map[uint64]reader)
	for _, c := range conns {
		if c.Pending == 0 {
			continue
		}
		r, known := before[c.Cid]
		if read := c.OutBytes - int64(c.Pending); !known || read > r.read {
			r = reader{read: read, grew: now}
			f.grew = now
		}
		f.clients[c.Cid] = r
		f.all += int64(c.Pending)
		if now.Sub(r.grew) <= stuckFor {
			f.moving += int64(c.Pending)
		}
	}
	return now.Sub(f.grew) > f.deadline
}

// Load is what the clients of other processes take of a server.
type Load struct {
	Clients int
	Pending int64  // bytes that wait to be sent to them
	Closed  uint64 // clients that were closed since the start, because they read too slowly; NATS counts some twice
	Refused uint64 // clients that were refused since the start, because too many are connected
}

// Load returns what the clients of other processes take now.
func (s *Server) Load() Load {
	clients := s.clients()
	load := Load{Clients: len(clients), Closed: s.s.NumSlowConsumersClients(), Refused: s.admission.refused.Load()}
	for _, c := range clients {
		load.Pending += int64(c.Pending)
	}
	return load
}

// clients returns the connections of other processes. A connection of this process has no address.
func (s *Server) clients() (list []*natsserver.ConnInfo) {
	conns, err := s.s.Connz(&natsserver.ConnzOptions{Limit: math.MaxInt32})
	if err != nil {
		return nil
	}
	for _, c := range conns.Conns {
		if c.IP != "" {
			list = append(list, c)
		}
	}
	return list
}

package bus

import (
	"context"
	"time"
)

// Link is what a Conn needs of the network beneath it: core NATS, or a simulated
// network (New). Delivery is at most once. All methods may be called concurrently.
type Link interface {
	// Publish sends data, of at most MaxPayload bytes, to those subscribed to
	// subject. Messages of one goroutine arrive in order. data is not kept.
	Publish(subject, reply string, data []byte) error
	// Subscribe calls f with each message on subject (in which * stands for one
	// word), one at a time, in order, in a goroutine of the subscription; of those
	// who share a queue, one is called. It is in force when Subscribe returns.
	Subscribe(subject, queue string, f func(Message)) (closer, error)
	// Request publishes data with an inbox of its own for reply and returns the
	// first answer; ErrNoAnswer at once where nobody is subscribed.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)
	// Flush waits until all that was published before is on its way.
	Flush(ctx context.Context) error
	// MaxPayload is the greatest message, in bytes.
	MaxPayload() int
	// Connected reports whether the link is up. While it is not, the methods
	// above return ErrOffline.
	Connected() bool
	// ServerName names the server that the link goes to, empty where there is none.
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

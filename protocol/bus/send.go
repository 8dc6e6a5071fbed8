package bus

import (
	"github.com/coppice-ldl/coppice/protocol"
)

// Message is what a subscription delivers. Data belongs to the receiver.
type Message struct {
	Subject string
	Reply   string // subject for answers, may be empty
	Data    []byte
	// Nobody says, instead of Data, that nobody was subscribed to where a message was
	// sent that wanted its answers on Subject.
	Nobody bool
}

// Send publishes a message, in fragments where it is larger than the server
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
// that neither it nor the library puts it together from several reads, and all copies that are made of it on its way stay in the processor's cache.
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
	var d drain
	d.begin()
	return protocol.SplitParts(parts, limit, c.sender, c.message.Add(1), func(b []byte) error {
		if long && c.server != nil {
			c.server.await(subject, len(b), &d)
		}
		return c.publish(subject, reply, b)
	})
}

func (c *Conn) publish(subject, reply string, b []byte) error {
	if c.server != nil {
		bytes, err := c.server.reserve(subject, len(b))
		if err != nil {
			return err
		}
		defer c.server.relief.sent(bytes)
	}
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
// goroutine and order, with the reply subject of a message that was sent to where
// nobody is subscribed: the server says so at once, so it tells of a dead receiver
// long before its silence does.
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

package bus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/coppice-ldl/coppice/protocol"
)

// Message is what a subscription delivers. Data belongs to the receiver.
type Message struct {
	Subject string
	Reply   string // subject for answers, may be empty
	Data    []byte
}

// Send publishes a message, in fragments where it is larger than the server
// takes at once. Messages of one goroutine arrive in order. An error says that
// the message was not sent, or not wholly (the receiver then drops it); nil does
// not say that it arrived. msg is not kept.
func (c *Conn) Send(subject, reply string, msg []byte) error {
	limit := int(c.nc.MaxPayload())
	if len(msg) > limit {
		c.mu.Lock() // a receiver joins one message of a sender at a time
		defer c.mu.Unlock()
	}
	err := protocol.Split(msg, limit, c.sender, c.message.Add(1), func(b []byte) error {
		return c.publish(subject, reply, b)
	})
	return wrap(err, "send to "+subject)
}

func (c *Conn) publish(subject, reply string, b []byte) error {
	var err error
	if reply == "" {
		err = c.nc.Publish(subject, b)
	} else {
		err = c.nc.PublishRequest(subject, reply, b)
	}
	if err == nil {
		c.traffic.Sent(len(b))
	}
	return err
}

// Subscription is an open subscription.
type Subscription struct {
	sub  *nats.Subscription
	done chan struct{}
}

// Subscribe calls f with each message on subject, whole and in order, one at a
// time, in a goroutine of the subscription. It is in force when Subscribe
// returns, and again after each reconnect.
func (c *Conn) Subscribe(subject string, f func(Message)) (*Subscription, error) {
	var join protocol.Joiner
	return c.subscribe(subject, "", func(m *nats.Msg) {
		if nobodyListens(m) {
			return
		}
		whole, err := join.Add(m.Data)
		if err != nil {
			c.log.Warn("dropped a message", "subject", m.Subject, "error", err)
			return
		}
		if whole != nil {
			f(Message{m.Subject, m.Reply, whole})
		}
	})
}

// nobodyListens reports whether m is the server's word that nobody was subscribed
// to a message that asked for replies here: its sender finds out by other ways.
func nobodyListens(m *nats.Msg) bool {
	return len(m.Data) == 0 && m.Header.Get("Status") == "503"
}

// subscribe counts what arrives, and returns once the server knows.
func (c *Conn) subscribe(subject, queue string, f func(*nats.Msg)) (*Subscription, error) {
	sub, err := c.nc.QueueSubscribe(subject, queue, func(m *nats.Msg) {
		c.traffic.Received(len(m.Data))
		f(m)
	})
	if err != nil {
		return nil, wrap(err, "subscribe to "+subject)
	}
	s := &Subscription{sub, make(chan struct{})}
	sub.SetClosedHandler(func(string) { close(s.done) })
	if err := sub.SetPendingLimits(backlogMessages, backlogBytes); err != nil {
		return nil, fmt.Errorf("bus: subscribe to %s: %w", subject, err)
	}
	if err := c.Flush(context.Background()); err != nil && c.Connected() {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the subscription and waits until its handler has returned; what
// has not been delivered is dropped. It must not be called from the handler.
func (s *Subscription) Close() {
	if err := s.sub.Unsubscribe(); err != nil {
		return // closed before, or with its connection
	}
	<-s.done
}

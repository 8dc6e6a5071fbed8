package bus

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
)

// serveAtOnce is the number of requests that one Serve handles at once.
func serveAtOnce() int { return max(16, 4*runtime.GOMAXPROCS(0)) }

// Serve answers requests on subject with f, several at a time but a bounded
// number; each request goes to one member of the queue group, or to all who
// serve the subject where queue is empty. Where f returns nil there is no answer.
// f may keep neither req nor what it returned.
func (c *Conn) Serve(subject, queue string, f func(req []byte) []byte) (*Subscription, error) {
	return c.serve(subject, queue, func(m Message) []byte { return f(m.Data) })
}

func (c *Conn) serve(subject, queue string, f func(Message) []byte) (*Subscription, error) {
	slots := make(chan struct{}, serveAtOnce())
	sub, err := c.subscribe(subject, queue, func(m Message) {
		if m.Reply != "" && !c.answers(m.Reply) {
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
// at once where nobody serves the subject and after ctx's deadline where nobody
// answers, and ErrOffline without a connection.
func (c *Conn) Request(ctx context.Context, subject string, msg []byte) ([]byte, error) {
	if limit := c.link.MaxPayload(); len(msg) > limit {
		return nil, fmt.Errorf("%w: the request to %[3]s has %[2]d bytes, want at most %[4]d", ErrTooLarge, len(msg), subject, limit)
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

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/internal/bus"
	"github.com/coppice-ldl/coppice/protocol"
)

// echoes is how many round trips transfers makes for each figure, and how many
// figures there are.
const (
	echoes  = 500
	figures = 5
)

// transfers measures what a message of out bytes and its answer of back bytes take
// over a NATS server as coordinators embed it: a leader beside the server, a worker,
// which is another process, over TCP. The worker is busy for compute before it
// answers, in the rhythm of a job: a leader that was idle meanwhile takes longer to
// wake than one that is asked all the time. That time is no part of the figures.
func (b *Bench) transfers(ctx context.Context, out, back int, compute time.Duration) (_ Spread, err error) {
	server, err := bus.StartServer(bus.ServerOptions{Name: "bench", Host: "127.0.0.1"})
	if err != nil {
		return Spread{}, err
	}
	defer server.Close()
	leader, err := bus.Connect(ctx, bus.Options{Server: server, Name: "leader"})
	if err != nil {
		return Spread{}, err
	}
	defer leader.Close()
	e := &echo{leader: leader, compute: compute, out: message(out), arrived: make(chan struct{}, 1)}
	arrivals, err := leader.Subscribe(subjectBack, func(bus.Message) { e.arrived <- struct{}{} })
	if err != nil {
		return Spread{}, err
	}
	defer arrivals.Close()
	worker, err := b.Cluster.Launch("echo", "echo", "--nats", server.ClientURL(), "--bytes", strconv.Itoa(back), "--compute", compute.String())
	if err != nil {
		return Spread{}, err
	}
	defer func() { err = errors.Join(err, worker.Quit(ctx)) }()
	limited, cancel := context.WithTimeout(ctx, echoLimit+(figures+1)*echoes*compute)
	defer cancel()
	return e.measure(limited)
}

// message returns n bytes, at least 2, that pass as a message of this protocol.
func message(n int) []byte {
	b := make([]byte, max(2, n))
	b[0], b[1] = protocol.Version, byte(protocol.KindPart)
	return b
}

// echo sends messages to a worker that answers each.
type echo struct {
	leader  *bus.Conn
	out     []byte
	compute time.Duration
	arrived chan struct{}
}

const (
	subjectOut  = "bench.out"
	subjectBack = "bench.back"
)

// echoLimit bounds a measurement less what is computed in it, the start of the worker
// included.
const echoLimit = time.Minute

func (e *echo) measure(ctx context.Context) (Spread, error) {
	if err := e.arrival(ctx); err != nil { // the worker says that it listens
		return Spread{}, err
	}
	var seconds []float64
	for range figures + 1 {
		began := time.Now()
		for range echoes {
			if err := e.once(ctx); err != nil {
				return Spread{}, err
			}
		}
		seconds = append(seconds, time.Since(began).Seconds()/echoes-e.compute.Seconds())
	}
	return SpreadOf(seconds[1:]), nil
}

func (e *echo) once(ctx context.Context) error {
	if err := e.leader.Send(subjectOut, "", e.out); err != nil {
		return err
	}
	return e.arrival(ctx)
}

func (e *echo) arrival(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("bench: the process that echoes does not answer: %w", ctx.Err())
	case <-e.arrived:
		return nil
	}
}

// Echo is the worker of a measurement of transfers: it keeps a processor busy for
// compute, as a kernel does, and then sends back bytes, for each message, until ctx is
// done.
func Echo(ctx context.Context, url string, back int, compute time.Duration) error {
	conn, err := bus.Connect(ctx, bus.Options{URLs: []string{url}, Name: "worker"})
	if err != nil {
		return err
	}
	defer conn.Close()
	answer := message(back)
	orders, err := conn.Subscribe(subjectOut, func(bus.Message) {
		for began := time.Now(); time.Since(began) < compute; {
		}
		conn.Send(subjectBack, "", answer) // what is lost, the other side waits for in vain
	})
	if err != nil {
		return err
	}
	defer orders.Close()
	if err := conn.Send(subjectBack, "", answer); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/harness/proc"
	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/protocol"
	"github.com/coppice-ldl/coppice/protocol/bus"
)

// echoes is how many round trips a figure of transfers is the mean of; before the first
// figure, as many are made that do not count.
const echoes = 1000

// exchange measures what a message of some bytes and its answer take over a NATS
// server as coordinators embed it: a leader beside the server, a worker, which is
// another process, over TCP. The worker is busy for compute before it answers, in the
// rhythm of a job: a leader that was idle meanwhile takes longer to wake than one that
// is asked all the time. That time is no part of the figures. Both are idle during the
// jobs that are measured beside them.
type exchange struct {
	server   *bus.Server
	arrivals *bus.Subscription
	worker   *proc.Node
	echo     echo
}

// exchange begins messages of out bytes and answers of back bytes.
func (b *Bench) exchange(ctx context.Context, out, back int, compute time.Duration) (x *exchange, err error) {
	x = &exchange{echo: echo{compute: compute, out: message(out), arrived: make(chan struct{}, 1)}}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close(ctx))
			x = nil
		}
	}()
	source, err := b.Cluster.Certificates().Open(certs.Coordinator, "bench")
	if err != nil {
		return x, err
	}
	if x.server, err = bus.StartServer(bus.ServerOptions{Name: "bench", Host: "127.0.0.1", TLS: source, Handshake: protocol.LeastHandshake}); err != nil {
		return x, err
	}
	if x.echo.leader, err = bus.Connect(ctx, bus.Options{Server: x.server, Name: "leader"}); err != nil {
		return x, err
	}
	if x.arrivals, err = x.echo.leader.Subscribe(subjectBack, func(bus.Message) { x.echo.arrived <- struct{}{} }); err != nil {
		return x, err
	}
	flags, err := b.Cluster.Certificates().Flags(certs.Worker, echoName)
	if err != nil {
		return x, err
	}
	x.worker, err = b.Cluster.Launch("echo", append([]string{"echo", "--nats", x.server.ClientURL(), "--bytes", strconv.Itoa(back), "--compute", compute.String()}, flags...)...)
	if err != nil {
		return x, err
	}
	limited, cancel := context.WithTimeout(ctx, echoLimit)
	defer cancel()
	if err = x.echo.arrival(limited); err != nil { // the worker says that it listens
		return x, err
	}
	_, err = x.measure(ctx)
	return x, err
}

// measure returns the seconds of a message and its answer.
func (x *exchange) measure(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, echoLimit+echoes*x.echo.compute)
	defer cancel()
	began := time.Now()
	for range echoes {
		if err := x.echo.once(ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds()/echoes - x.echo.compute.Seconds(), nil
}

// close ends what began.
func (x *exchange) close(ctx context.Context) (err error) {
	if x.worker != nil {
		err = x.worker.Quit(ctx)
	}
	if x.arrivals != nil {
		x.arrivals.Close()
	}
	if x.echo.leader != nil {
		x.echo.leader.Close()
	}
	if x.server != nil {
		x.server.Close()
	}
	return err
}

// message returns n bytes, at least 2, that pass as a message of this protocol.
func message(n int) []byte {
	b := make([]byte, max(2, n))
	b[0], b[1] = protocol.Version, byte(protocol.KindPartial)
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

// echoName is the name of the worker, also in its certificate.
const echoName = "worker"

// echoLimit bounds the start of the worker, and a figure less what is computed in it.
const echoLimit = time.Minute

func (e *echo) once(ctx context.Context) error {
	if err := e.leader.Send(subjectOut, "", e.out); err != nil {
		return err
	}
	return e.arrival(ctx)
}

func (e *echo) arrival(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("bench: the echo process does not answer: %w", ctx.Err())
	case <-e.arrived:
		return nil
	}
}

// Echo is the worker of a measurement of transfers: it keeps a processor busy for
// compute, as a kernel does, and then sends back bytes, for each message, until ctx is
// done. A nil source means a server in the clear.
func Echo(ctx context.Context, url string, source *certs.Source, back int, compute time.Duration) error {
	conn, err := bus.Connect(ctx, bus.Options{URLs: []string{url}, TLS: source, Name: echoName})
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

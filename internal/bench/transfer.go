package bench

import (
	"context"
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
// over a NATS server as coordinators embed it: a leader beside the server, a
// worker over TCP. The worker is busy for compute before it answers, in the rhythm of
// a job: a leader that was idle meanwhile takes longer to wake than one that is asked
// all the time. That time is no part of the figures.
func (b *Bench) transfers(ctx context.Context, out, back int, compute time.Duration) (Spread, error) {
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
	worker, err := bus.Connect(ctx, bus.Options{URLs: []string{server.ClientURL()}, Name: "worker"})
	if err != nil {
		return Spread{}, err
	}
	defer worker.Close()
	e := &echo{leader: leader, worker: worker, compute: compute, out: message(out), back: message(back), arrived: make(chan struct{}, 1)}
	return e.measure(ctx)
}

// message returns n bytes, at least 2, that pass as a message of this protocol.
func message(n int) []byte {
	b := make([]byte, max(2, n))
	b[0], b[1] = protocol.Version, byte(protocol.KindPart)
	return b
}

// echo sends messages to and fro.
type echo struct {
	leader, worker *bus.Conn
	out, back      []byte
	compute        time.Duration
	arrived        chan struct{}
}

const (
	subjectOut  = "bench.out"
	subjectBack = "bench.back"
)

func (e *echo) measure(ctx context.Context) (Spread, error) {
	answers, err := e.worker.Subscribe(subjectOut, func(bus.Message) { e.answer() })
	if err != nil {
		return Spread{}, err
	}
	defer answers.Close()
	arrivals, err := e.leader.Subscribe(subjectBack, func(bus.Message) { e.arrived <- struct{}{} })
	if err != nil {
		return Spread{}, err
	}
	defer arrivals.Close()
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

// answer keeps a processor busy as a kernel does, then sends the bytes back.
func (e *echo) answer() {
	for began := time.Now(); time.Since(began) < e.compute; {
	}
	e.worker.Send(subjectBack, "", e.back) // what is lost, once waits for until ctx is done
}

func (e *echo) once(ctx context.Context) error {
	if err := e.leader.Send(subjectOut, "", e.out); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-e.arrived:
		return nil
	}
}

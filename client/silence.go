package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coppice-ldl/coppice/protocol"
)

const (
	// probes is how often a coordinator that does not answer a request is asked whether
	// it answers anything, in the silence that is borne.
	probes = 3
	// smallBody is how many bytes a brief request has at most: more may keep a thin link
	// busy.
	smallBody = 64 << 10
)

// silent is why a request was given up: nothing came for so long.
type silent struct{ time.Duration }

func (s silent) Error() string { return fmt.Sprintf("no answer in %v", s.Duration) }

// prober asks coordinators whether they are there; a connection serves one question, as
// one that hangs says nothing of the next.
var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// questions ask a coordinator, beside a request to it, whether it is there.
type questions struct {
	cancel context.CancelCauseFunc
	enough chan struct{}
	done   sync.WaitGroup
}

// untilSilent returns a context that ends, with silent as its cause, once a coordinator
// has answered nothing for a while: not what ctx is for, and not the question, asked
// beside it, whether it is there.
func (c *Client) untilSilent(ctx context.Context, server string) (watched context.Context, q *questions) {
	q = &questions{enough: make(chan struct{})}
	watched, q.cancel = context.WithCancelCause(ctx)
	q.done.Go(func() {
		tick := time.NewTicker(c.silent / probes)
		defer tick.Stop()
		for heard := time.Now(); time.Since(heard) < c.silent; {
			select {
			case <-watched.Done():
				return
			case <-q.enough:
				return
			case <-tick.C:
			}
			if alive(watched, server, c.silent/probes) {
				heard = time.Now()
			}
		}
		q.cancel(silent{c.silent})
	})
	return watched, q
}

// answered ends the questions: the rest of an answer may take long.
func (q *questions) answered() { close(q.enough) }

// end ends the context.
func (q *questions) end() {
	q.cancel(nil)
	q.done.Wait()
}

// alive reports whether a coordinator answers anything within a time.
func alive(ctx context.Context, server string, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
	return err == nil
}

// brief reports whether a coordinator that is well answers a request at once.
func (k *call) brief() bool { return k.timeout <= tryTimeout && k.size <= smallBody }

// bounded returns how long one try of a call may take. A brief one ends with patience,
// but is given time for one answer at the least.
func (c *Client) bounded(k *call, began time.Time) time.Duration {
	if !k.brief() || c.waitsOn() {
		return k.timeout
	}
	return min(k.timeout, time.Until(began.Add(max(c.Patience, leastTry))))
}

// leastTry is how long a request is given even where nothing is waited for: a
// coordinator says by then that its leader does not answer.
const leastTry = protocol.ForwardSilence + 500*time.Millisecond

// overdue turns the error of a try that took too long into one that says how long.
func overdue(limited context.Context, err error) error {
	if s := (silent{}); errors.As(context.Cause(limited), &s) {
		return s
	}
	return err
}

package api

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

const (
	// probes is how often a leader is asked in the silence that is borne.
	probes = 4
	// uploadPatience is how many times as much is borne while a body of more than
	// smallBody bytes is on its way, which may keep a thin link busy.
	uploadPatience = 10
	smallBody      = 64 << 10
)

// prober asks leaders whether they are there; a connection serves one question, as one
// that hangs says nothing of the next.
var prober = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// untilLeaderIsSilent gives a forwarded request up where the leader neither answers it
// nor, asked beside it, anything else for a while: it may be cut off from here, or hang,
// without anybody else leading as far as is known here. The client then asks another
// coordinator. stop waits for the end of the watch, which is that of ctx.
func (f *forwarder) untilLeaderIsSilent(ctx context.Context, r *http.Request, host string, cancel func()) (watched context.Context, stop func()) {
	patience := f.patience
	if r.ContentLength > smallBody {
		patience *= uploadPatience
	}
	answers, done := make(chan struct{}), make(chan struct{})
	var once sync.Once
	watched = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() { once.Do(func() { close(answers) }) }})
	go func() {
		defer close(done)
		tick := time.NewTicker(patience / probes)
		defer tick.Stop()
		for heard := time.Now(); time.Since(heard) < patience; {
			select {
			case <-ctx.Done():
				return
			case <-answers:
				return
			case <-tick.C:
			}
			if f.there(host, patience/probes) {
				heard = time.Now()
			}
		}
		cancel()
	}()
	return watched, func() { <-done }
}

// there reports whether a coordinator answers anything within a time. Requests that wait
// at once share a question.
func (f *forwarder) there(host string, within time.Duration) bool {
	answered, _, _ := f.questions.Do(host, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/healthz", nil)
		if err != nil {
			return false, nil
		}
		response, err := prober.Do(request)
		if err != nil {
			return false, nil
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<10))
		return err == nil, nil
	})
	return answered.(bool)
}

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-ldl/coppice/internal/units"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// DefaultPatience is how long a request is sent again while no coordinator answers it.
const DefaultPatience = protocol.ClientPatience

const (
	tryTimeout  = protocol.ClientTry
	blobTimeout = 2 * time.Minute
	firstWait   = 20 * time.Millisecond
	longestWait = 500 * time.Millisecond
	// watchSilence is how long a watch may be silent before it is opened again: its
	// coordinator may hang.
	watchSilence = protocol.WatchSilence
	longTry      = time.Second // after a longer try, Waiting is called at once
	// leastTry is the least time for a request, even without patience: within it, a
	// follower says that its leader does not answer.
	leastTry = protocol.ForwardSilence + 500*time.Millisecond
	// probesPerSilence is how often a silent coordinator is probed before a request is
	// given up.
	probesPerSilence = 3
	// smallBody bounds the body of a brief request in bytes. A larger one may fill a slow
	// link.
	smallBody = 64 << 10
	// The bounds of responses in bytes. The rest is not read.
	maxJSON  = 256 << 20
	maxBytes = 4 << 30 // of a blob or a model
)

// Options say how long and how loudly a client tries. They must not change after the
// first request.
type Options struct {
	// Patience is how long a request is sent again while no coordinator answers.
	Patience time.Duration
	// Faithful is true if requests are sent again until their context is done, however
	// long the cluster has no leader or does not answer. It holds once a coordinator has
	// answered.
	Faithful bool
	// Waiting, if set, is called with the reason when a request has to be sent again. It
	// is also called when a request was given up at one of several coordinators. It may
	// be called concurrently.
	Waiting func(error)
}

// transport sends requests to one coordinator after the other, again and again, until one
// answers or patience ends.
type transport struct {
	*Options // of the client
	places   *places
	silent   time.Duration // after which a coordinator that answers nothing is given up
	maxJSON  int64         // bytes of a response in JSON
	met      atomic.Bool   // true once a coordinator has answered
	http     *http.Client
}

// call is one request.
type call struct {
	method, path string
	body         func() (io.ReadCloser, error) // if set, opens the body for each try
	size         int64                         // of the body
	timeout      time.Duration                 // of a try
	limit        int64                         // bytes of a response; 0: take bounds it
	take         func(io.Reader) error         // reads a successful response
	unknown      bool                          // true if a try without an answer may have changed something
}

// brief reports whether a coordinator that works answers the request at once.
func (k *call) brief() bool { return k.timeout <= tryTimeout && k.size <= smallBody }

// jsonCall returns the call of a request and a response in JSON. Either may be nil.
func (t *transport) jsonCall(method, path string, in, out any) (*call, error) {
	k := &call{method: method, path: path, timeout: tryTimeout, limit: t.maxJSON, take: func(r io.Reader) error {
		if out == nil {
			return nil
		}
		return json.NewDecoder(r).Decode(out)
	}}
	if in == nil {
		return k, nil
	}
	b, err := json.Marshal(in)
	k.body = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
	k.size = int64(len(b))
	return k, err
}

// json sends a request in JSON and decodes the response. Either may be nil.
func (t *transport) json(ctx context.Context, method, path string, in, out any) error {
	k, err := t.jsonCall(method, path, in, out)
	if err != nil {
		return err
	}
	return t.do(ctx, k)
}

// do sends a request until it is answered or patience ends.
func (t *transport) do(ctx context.Context, k *call) error {
	began, pause := time.Now(), firstWait
	for {
		hopeless, err := t.tryAll(ctx, k, began)
		if err == nil || hopeless {
			return err
		}
		if time.Now().Add(pause).After(began.Add(t.Patience)) && !t.tireless() {
			servers := strings.ReplaceAll(strings.Join(t.places.all(), ", "), "http://", "")
			return &Unavailable{servers, err, k.unknown}
		}
		if t.Waiting != nil {
			t.Waiting(err)
		}
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestWait)
	}
}

// tireless reports whether requests are sent again without end.
func (t *transport) tireless() bool { return t.Faithful && t.met.Load() }

// tryAll tries every address until one answers. The request was first tried at began. It
// returns hopeless if another try cannot succeed: the request was refused, or no server
// at these addresses is a coordinator.
func (t *transport) tryAll(ctx context.Context, k *call, began time.Time) (hopeless bool, err error) {
	changes := k.method == http.MethodPost && k.path != at("datasets", "check") || k.method == http.MethodDelete // more than blobs
	strangers := 0
	for turn := t.places.turn(); ; {
		if err != nil && k.brief() && time.Since(began) >= max(t.Patience, leastTry) && !t.tireless() {
			break // no time is left for the other addresses
		}
		server, ok := turn.next(ctx)
		if !ok {
			break
		}
		tried := time.Now()
		again, one := t.try(ctx, server, k, began)
		if !again {
			return true, one
		}
		if t.Waiting != nil && time.Since(tried) >= longTry { // the other addresses may take as long
			t.Waiting(one)
		}
		k.unknown = k.unknown || changes && perhapsDone(one)
		if errors.Is(one, ErrStranger) {
			strangers++
			err = one // it says more than the error of a coordinator that does not answer
		} else if !errors.Is(err, ErrStranger) {
			err = one
		}
		t.places.failed(server)
	}
	return strangers == len(t.places.given) && !t.met.Load(), err // a proxy may run while no coordinator does
}

// perhapsDone reports whether a request that failed may have taken effect: a coordinator
// did not answer it, or answered that it does not know.
func perhapsDone(err error) bool {
	var said *Error
	if errors.As(err, &said) {
		return said.Unknown
	}
	return !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, ErrStranger)
}

// try sends a request to a server once. again is true if another try may succeed. A brief
// request also ends if the server is silent, and with patience.
func (t *transport) try(ctx context.Context, server string, k *call, began time.Time) (again bool, err error) {
	timeout := k.timeout
	if k.brief() && !t.tireless() {
		timeout = min(timeout, time.Until(began.Add(max(t.Patience, leastTry))))
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, silent{timeout.Round(100 * time.Millisecond)})
	defer cancel()
	asking, answered := limited, func() {}
	if k.brief() {
		var end func()
		asking, answered, end = t.untilSilent(limited, server)
		defer end()
	}
	response, again, err := t.ask(ctx, asking, server, k)
	if err != nil {
		return again, err
	}
	defer response.Body.Close()
	answered()
	if err := k.take(atMost(response.Body, k.limit)); err != nil {
		return ctx.Err() == nil && !errors.Is(err, errLong), short(ctx, asking, err)
	}
	return false, nil
}

// ask sends a request to a server once and returns a successful response. The caller
// closes its body. again is true if another try may succeed. limited is ctx with a
// timeout.
func (t *transport) ask(ctx, limited context.Context, server string, k *call) (response *http.Response, again bool, err error) {
	var body io.ReadCloser
	if k.body != nil {
		if body, err = k.body(); err != nil {
			return nil, ctx.Err() == nil, found(server, short(ctx, limited, err))
		}
	}
	request, err := http.NewRequestWithContext(limited, k.method, server+k.path, body)
	if err == nil {
		if body != nil {
			request.ContentLength = k.size
		}
		response, err = t.http.Do(request)
	}
	if err != nil {
		return nil, ctx.Err() == nil, found(server, short(ctx, limited, err))
	}
	if response.StatusCode < 300 && !isPage(response) {
		t.met.Store(true)
		t.places.heard(server)
		t.places.answered(server)
		return response, false, nil
	}
	defer response.Body.Close()
	if again, err = refusal(server, response); !errors.Is(err, ErrStranger) {
		t.met.Store(true)
		t.places.heard(server)
	}
	if !again {
		t.places.answered(server)
	}
	return nil, again, err
}

// untilSilent returns a context that ends, with silent as its cause, if the server
// answers neither the request nor probes for a while. The caller calls answered when the
// response begins, since the rest may take long, and end to end the context.
func (t *transport) untilSilent(ctx context.Context, server string) (watched context.Context, answered, end func()) {
	watched, cancel := context.WithCancelCause(ctx)
	enough := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(t.silent / probesPerSilence)
		defer tick.Stop()
		for heard := time.Now(); time.Since(heard) < t.silent; {
			select {
			case <-watched.Done():
				return
			case <-enough:
				return
			case <-tick.C:
			}
			if alive(watched, server, t.silent/probesPerSilence) {
				heard = time.Now()
			}
		}
		cancel(silent{t.silent})
	})
	return watched, func() { close(enough) }, func() {
		cancel(nil)
		done.Wait()
	}
}

var errLong = errors.New("the answer is too long")

// atMost returns a reader of r that fails after limit bytes if there are more. A limit of
// 0 means none.
func atMost(r io.Reader, limit int64) io.Reader {
	if limit <= 0 {
		return r
	}
	return &limited{r: r, limit: limit, left: limit}
}

// limited is the reader of atMost.
type limited struct {
	r           io.Reader
	limit, left int64
}

// Read implements io.Reader. It reads one byte more than the limit, to find out whether
// there are more.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p[:min(int64(len(p)), l.left+1)])
	if l.left -= int64(n); l.left < 0 {
		return n - 1, fmt.Errorf("%w: it has more than %s", errLong, units.Format(l.limit))
	}
	return n, err
}

// noisyReader calls came for each piece that is read. Over a slow link, a line of a watch
// may take longer than the watch may be silent.
type noisyReader struct {
	io.Reader
	came func()
}

// Read implements io.Reader.
func (r *noisyReader) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); n > 0 {
		r.came()
	}
	return n, err
}

// at joins the elements of a path. Each stays one element for the server, whatever it
// contains.
func at(elements ...string) string {
	var b strings.Builder
	b.WriteString("/v1")
	for _, e := range elements {
		if e = url.PathEscape(e); e == "." || e == ".." { // cleaning the path would remove it
			e = strings.ReplaceAll(e, ".", "%2E")
		}
		b.WriteString("/" + e)
	}
	return b.String()
}

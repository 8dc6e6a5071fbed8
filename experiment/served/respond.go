package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/internal/errtext"
	"github.com/coppice-ldl/coppice/internal/files"
	"github.com/coppice-ldl/coppice/protocol"
)

// withStatus is an error with the status of its response.
type withStatus struct {
	status int
	error
}

func (e withStatus) Unwrap() error { return e.error }

func notFound(format string, args ...any) error {
	return withStatus{http.StatusNotFound, fmt.Errorf(format, args...)}
}

func wrong(err error) error { return withStatus{http.StatusBadRequest, err} }

// part is a list with a header Link, as coordinators answer.
type part struct {
	list any
	link string // empty: nothing follows
}

// respond writes a value, or an error as a Problem.
func respond(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	if p, ok := v.(part); ok && err == nil {
		if v = p.list; p.link != "" {
			w.Header().Set("Link", p.link)
		}
	}
	if err != nil {
		var known withStatus
		switch status = http.StatusInternalServerError; {
		case errors.As(err, &known):
			status = known.status
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			status = http.StatusServiceUnavailable
		case errors.Is(err, fs.ErrNotExist): // it was deleted after the scan
			status = http.StatusNotFound
		}
		text := files.Message(err)
		v = protocol.Problem{Error: text, Kind: protocol.ProblemKind(status, false), Form: errtext.Of(text, err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error has no reader any more
}

// readList reads the query of a list. what takes it, for errors.
func readList(r *http.Request, what string, params []protocol.Param, q *protocol.ListQuery) error {
	if err := protocol.ReadQuery(r.URL.Query(), what, params); err != nil {
		return wrong(err)
	}
	if q.Until != 0 && q.Until < q.Since {
		return wrong(fmt.Errorf("until: %d is before since, %d", q.Until, q.Since))
	}
	return nil
}

func noElement(after string) error {
	return notFound("after: %.200q: not found; list from the first element on", after)
}

// The time between two lines of a stream: linesApart, or a multiple of the time that a line took to make.
const (
	linesApart = protocol.WatchBeat
	looksApart = 10
)

// stream writes what line returns as lines of JSON, until last is true or the client has left. If line returns nil,
// nothing has changed, and an empty line says that the stream is alive.
func stream(w http.ResponseWriter, r *http.Request, line func() (v any, last bool, err error)) {
	out, conn := json.NewEncoder(w), http.NewResponseController(w)
	for begun := false; ; begun = true {
		began := time.Now()
		v, last, err := line()
		if err != nil {
			if !begun { // otherwise the client asks again, and hears why
				respond(w, nil, err)
			}
			return
		}
		if w.Header().Set("Content-Type", "application/jsonl"); r.Method == http.MethodHead {
			return
		}
		if v != nil {
			err = out.Encode(v)
		} else {
			_, err = io.WriteString(w, "\n")
		}
		if flushed := conn.Flush(); flushed != nil && !errors.Is(flushed, http.ErrNotSupported) || err != nil || last {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(min(max(linesApart, looksApart*time.Since(began)), protocol.WatchSilence/2)):
		}
	}
}

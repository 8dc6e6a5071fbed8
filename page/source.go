package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"

	"github.com/coppice-ldl/coppice/protocol"
)

// source asks the API in this process.
type source struct {
	api http.Handler
	log *slog.Logger
}

// get asks for a JSON value.
func (s source) get(ctx context.Context, path string, query url.Values, into any) error {
	return s.send(ctx, http.MethodGet, path, query, nil, into)
}

// post sends a JSON value. A nil value is an empty body.
func (s source) post(ctx context.Context, path string, query url.Values, value, into any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if value == nil {
		body = nil
	}
	return s.send(ctx, http.MethodPost, path, query, body, into)
}

// send makes a request and decodes its answer into a value, which may be nil. Errors are *Error.
func (s source) send(ctx context.Context, method, path string, query url.Values, body []byte, into any) error {
	b, err := s.bytes(ctx, method, path, query, body)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("the answer to %s %s cannot be read: %w", method, path, err)
	}
	return nil
}

// part asks for a part of a list. after is the name of its last element if others follow; otherwise it is empty.
func (s source) part(ctx context.Context, path string, query url.Values, into any) (after string, err error) {
	var answer answer
	if err := s.serve(ctx, &answer, http.MethodGet, path, query, nil); err != nil {
		return "", err
	}
	if err := answer.problem(); err != nil {
		return "", err
	}
	if err := json.Unmarshal(answer.Bytes(), into); err != nil {
		return "", fmt.Errorf("the answer to GET %s cannot be read: %w", path, err)
	}
	_, link, _ := strings.Cut(answer.Header().Get("Link"), "<?")
	link, _, _ = strings.Cut(link, ">")
	next, err := url.ParseQuery(link)
	if err != nil {
		return "", fmt.Errorf("the header Link of GET %s cannot be read: %w", path, err)
	}
	return next.Get("after"), nil
}

// bytes makes a request and returns its answer. Errors are *Error.
func (s source) bytes(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	var answer answer
	if err := s.serve(ctx, &answer, method, path, query, body); err != nil {
		return nil, err
	}
	return answer.Bytes(), answer.problem()
}

// serve has the API answer a request for the caller of a context.
func (s source) serve(ctx context.Context, w http.ResponseWriter, method, path string, query url.Values,
	body []byte) (err error) {
	target := path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if err := isPlain(r.URL.Path); err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	defer func() {
		// A response that a coordinator forwards ends so if the leader dies meanwhile.
		if p := recover(); p == http.ErrAbortHandler {
			err = &Error{Status: http.StatusServiceUnavailable, Text: "The connection to the leader broke. Try again."}
		} else if p != nil { // in a feed, nothing else would keep the process alive
			s.log.Error("a request of the page panicked", "request", method+" "+path, "panic", p, "stack",
				string(debug.Stack()))
			err = &Error{Status: http.StatusInternalServerError, Text: "This is a fault of Coppice. The log says more."}
		}
	}()
	s.api.ServeHTTP(w, r)
	return nil
}

// isPlain returns an error if a path has an element such as "..", which a name of a browser's request may be. The API
// would answer with the way to another path.
func isPlain(text string) error {
	if path.Clean(text) == text {
		return nil
	}
	return &Error{Status: http.StatusNotFound, Text: fmt.Sprintf("There is nothing at %s.", text)}
}

// pass has the API answer a request of a browser, such as for a file. The path is escaped.
func (s source) pass(w http.ResponseWriter, r *http.Request, path string) error {
	target, err := url.ParseRequestURI(path)
	if err == nil {
		err = isPlain(target.Path)
	}
	if err != nil {
		return err
	}
	out := r.Clone(r.Context())
	out.URL, out.RequestURI = target, ""
	out.Header.Del("Cookie")
	s.api.ServeHTTP(w, out)
	return nil
}

// lines asks for a stream of lines. After an error, no line follows. A line is valid until the next one.
func (s source) lines(ctx context.Context, path string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		in, out := io.Pipe()
		answer := &answer{pipe: out}
		done := make(chan struct{})
		go func() {
			defer close(done)
			err := s.serve(ctx, answer, http.MethodGet, path, nil, nil)
			if err == nil {
				err = answer.problem()
			}
			out.CloseWithError(err) // nil is io.EOF
		}()
		defer func() {
			cancel()
			in.Close()
			<-done
		}()
		text := bufio.NewScanner(in)
		text.Buffer(nil, protocol.MaxJSON)
		for text.Scan() {
			if !yield(text.Bytes(), nil) {
				return
			}
		}
		if err := text.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// answer is a response of the API in memory. If pipe is set, a response without an error goes there.
type answer struct {
	bytes.Buffer
	header http.Header
	status int // 0: 200
	pipe   *io.PipeWriter
	large  bool // true if a part is missing
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.header == nil {
		a.header = make(http.Header)
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Flush implements http.Flusher. Each write is seen at once.
func (a *answer) Flush() {}

// errLarge ends a response that no page can show.
var errLarge = errors.New("the answer is too large for a page")

// Write implements io.Writer.
func (a *answer) Write(b []byte) (int, error) {
	if a.pipe != nil && (a.status == 0 || a.status == http.StatusOK) {
		return a.pipe.Write(b)
	}
	if a.large = a.large || a.Len()+len(b) > protocol.MaxJSON; a.large {
		return 0, errLarge
	}
	return a.Buffer.Write(b)
}

// problem returns the error that the answer has, or nil.
func (a *answer) problem() error {
	switch {
	case a.large:
		return errLarge
	case a.status < http.StatusBadRequest:
		return nil
	}
	e := &Error{Status: a.status, Problem: new(protocol.Problem)}
	if json.Unmarshal(a.Bytes(), e.Problem) != nil || e.Problem.Error == "" {
		e.Problem.Error = a.String()
	}
	e.Text = e.Problem.Error
	return e
}

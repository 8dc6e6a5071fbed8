package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/coppice-ldl/coppice/internal/certs"
	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// caller sends requests as a client does that was written by somebody else: to a
// given coordinator, with a token of its own, and again until there is an answer.
type caller struct {
	servers []string // host:port
	scheme  string
	http    *http.Client
}

func newCaller(servers []string, source *certs.Source) *caller {
	t := source.Transport(&http.Transport{MaxIdleConnsPerHost: 16, DisableCompression: true})
	return &caller{servers, source.URLScheme(), &http.Client{Transport: t}}
}

func (c *caller) close() { c.http.CloseIdleConnections() }

const (
	callTimeout = 2 * time.Second
	callPause   = 50 * time.Millisecond
	maxAnswer   = protocol.MaxJSON
)

// refused is the answer of a coordinator that will not do it.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("refused with status %d: %s", r.status, r.text) }

// conflict reports whether an error says that the job's state does not allow it.
func conflict(err error) bool {
	var r *refused
	return errors.As(err, &r) && r.status == http.StatusConflict
}

// do sends a request, beginning with coordinator first, until one answers.
func (c *caller) do(ctx context.Context, first int, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	for i := first; ; i++ {
		again, err := c.once(ctx, c.servers[i%len(c.servers)], method, path, body, out)
		if !again {
			return err
		}
		if err := wait.For(ctx, callPause); err != nil {
			return err
		}
	}
}

func (c *caller) once(ctx context.Context, server, method, path string, body []byte, out any) (again bool, err error) {
	limited, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, method, c.scheme+"://"+server+path, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	response, err := c.http.Do(r)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer response.Body.Close()
	b, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return ctx.Err() == nil, err
	}
	switch code := response.StatusCode; {
	case code < 300:
		return false, json.Unmarshal(b, out)
	case code == http.StatusServiceUnavailable, code == http.StatusBadGateway, code == http.StatusGatewayTimeout, code == http.StatusTooManyRequests:
		return true, nil
	default:
		return false, &refused{code, string(bytes.TrimSpace(b))}
	}
}

// submit sends a submission.
func (c *caller) submit(ctx context.Context, first int, token string, s protocol.Spec) (*protocol.JobInfo, error) {
	var j protocol.JobInfo
	return &j, c.do(ctx, first, http.MethodPost, "/v1/jobs", protocol.SubmitRequest{Token: token, Spec: s}, &j)
}

// tell sends pause, resume or cancel.
func (c *caller) tell(ctx context.Context, first int, job uint64, verb string) (*protocol.JobInfo, error) {
	var j protocol.JobInfo
	return &j, c.do(ctx, first, http.MethodPost, fmt.Sprintf("/v1/jobs/%d/%s", job, verb), struct{}{}, &j)
}

// delete deletes a job.
func (c *caller) delete(ctx context.Context, first int, job uint64) (*protocol.Deletion, error) {
	var d protocol.Deletion
	return &d, c.do(ctx, first, http.MethodPost, "/v1/jobs/delete", protocol.DeleteRequest{Jobs: []uint64{job}}, &d)
}

package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// maxLine bounds a line of a watch in bytes.
const maxLine = 64 << 20

// errNoLines says why a watch is opened again.
var errNoLines = errors.New("the coordinator that this command watches does not answer any more")

// Watch calls f with the state of a job at each change until the job ends, and returns
// its last state. It survives changes of leader and even the loss of all coordinators: it
// goes on until ctx is done, and calls Waiting meanwhile. What f sees never goes back,
// and is always about one job, even if another job gets its name. A job that does not
// exist is an error at once.
func (c *Client) Watch(ctx context.Context, job string, f func(*protocol.JobInfo)) (*protocol.JobInfo, error) {
	w := &watch{f: f}
	pause := firstWait
	turn := c.places.turn()
	server, _ := turn.next(ctx)
	for {
		before := w.lines
		again, err := c.follow(ctx, server, job, w)
		if !again {
			return w.last, err
		}
		if w.last != nil { // another job may have the name now
			job = strconv.FormatUint(w.last.ID, 10)
		}
		if w.silent {
			err = errNoLines
		}
		if w.lines > before {
			pause = firstWait
		}
		if w.lines == before || w.silent { // this coordinator would hang again
			c.places.failed(server)
			var ok bool
			if server, ok = turn.next(ctx); !ok {
				turn = c.places.turn()
				server, _ = turn.next(ctx)
			}
		}
		if c.Waiting != nil && err != nil {
			c.Waiting(err)
		}
		if err := wait.For(ctx, pause); err != nil {
			return w.last, err
		}
		pause = min(2*pause, longestWait)
	}
}

// watch is what was seen of a job.
type watch struct {
	f      func(*protocol.JobInfo)
	last   *protocol.JobInfo // nil: nothing yet
	lines  int
	silent bool // true if the watch ended because nothing came any more
}

// see takes a state unless it is older than the last one: a coordinator may lag. It
// always takes the end of the job, since nothing follows. Only one leader knows how far
// the present tasks are. If the next leader knows of fewer steps, the last progress stays
// until it is passed.
func (w *watch) see(j *protocol.JobInfo) {
	if last := w.last; last != nil && !j.State.Final() {
		if j.Index < last.Index || j.Rounds < last.Rounds {
			return
		}
		if last.Progress != nil && (j.Progress == nil || j.Progress.Step < last.Progress.Step) {
			j.Progress = last.Progress
		}
	}
	w.last = j
	w.f(j)
}

// follow opens the watch at a server once, and reads it until it ends or is silent.
func (c *Client) follow(ctx context.Context, server, job string, w *watch) (again bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(c.watchSilence, cancel)
	defer quiet.Stop()
	defer func() { w.silent = limited.Err() != nil }() // runs before the deferred cancel
	response, again, err := c.ask(ctx, limited, server, &call{method: http.MethodGet, path: at("jobs", job, "watch")})
	if err != nil {
		return again, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(&noisyReader{response.Body, func() { quiet.Reset(c.watchSilence) }})
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		w.lines++
		c.places.heard(server)
		if len(lines.Bytes()) == 0 { // it only says that the coordinator lives
			continue
		}
		var j protocol.JobInfo
		if err := json.Unmarshal(lines.Bytes(), &j); err != nil {
			return true, fmt.Errorf("a line of the watch cannot be read: %w", err)
		}
		if w.see(&j); j.State.Final() {
			return false, nil
		}
	}
	return ctx.Err() == nil, short(ctx, limited, lines.Err())
}

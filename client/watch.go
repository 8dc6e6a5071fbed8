package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/coppice-ldl/coppice/internal/wait"
	"github.com/coppice-ldl/coppice/protocol"
)

// silence is how long a watch may say nothing before it is opened again: its
// coordinator may hang.
const silence = protocol.WatchSilence

// errNoLines says why a watch begins anew.
var errNoLines = errors.New("the coordinator that this command watches does not answer any more")

// maxLine bounds a line of a watch.
const maxLine = 64 << 20

// Watch calls f with the job's state at each change, until the job ends, whose
// last state it returns. It survives changes of leader and even the loss of all
// coordinators: it goes on until ctx is done, telling c.Waiting meanwhile. What f
// sees never goes back, and is always of one job, also where another gets its name.
// A job that does not exist is an error at once.
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
		if w.last != nil { // whoever has the name now
			job = strconv.FormatUint(w.last.ID, 10)
		}
		if w.silent {
			err = errNoLines
		}
		if w.lines > before {
			pause = firstWait
		}
		if w.lines == before || w.silent { // what hangs would hang again
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
	f     func(*protocol.JobInfo)
	last  *protocol.JobInfo
	lines int
	// silent: the last watch was given up because nothing came any more.
	silent bool
}

// see takes a state, unless it is older than the last: a coordinator may lag. A
// job's end is always taken, since nothing follows it. Units that are under way are known
// to one leader only: where the next one knows of fewer steps, the last progress stands
// until it is passed.
func (w *watch) see(j *protocol.JobInfo) {
	if w.last != nil && !j.State.Final() && (j.Index < w.last.Index || j.Rounds < w.last.Rounds) {
		return
	}
	if w.last != nil && !j.State.Final() && behind(j, w.last) {
		j.Progress = w.last.Progress
	}
	w.last = j
	w.f(j)
}

// lively calls came for each piece that is read: over a thin link a line may take longer
// than a watch may be silent.
type lively struct {
	io.Reader
	came func()
}

// Read implements io.Reader.
func (r *lively) Read(p []byte) (n int, err error) {
	if n, err = r.Reader.Read(p); n > 0 {
		r.came()
	}
	return n, err
}

// behind reports whether a job tells fewer steps than before.
func behind(now, before *protocol.JobInfo) bool {
	return before.Progress != nil && (now.Progress == nil || now.Progress.Step < before.Progress.Step)
}

// follow opens the watch at a server once and reads it until it ends or goes silent.
func (c *Client) follow(ctx context.Context, server, job string, w *watch) (again bool, err error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(c.silence, cancel)
	defer quiet.Stop()
	defer func() { w.silent = limited.Err() != nil }() // before cancel
	response, again, err := c.ask(ctx, limited, server, &call{method: http.MethodGet, path: at("jobs", job, "watch")})
	if err != nil {
		return again, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(&lively{response.Body, func() { quiet.Reset(c.silence) }})
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		w.lines++
		c.places.heard(server)
		if len(lines.Bytes()) == 0 { // a sign of life
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
